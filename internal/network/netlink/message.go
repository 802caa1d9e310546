package netlink

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Message is one request, as it goes over the wire. Its length and number are
// filled in when it is sent.
type Message []byte

// New begins a request. header is what its family has in front of the
// attributes: rtmsg, nfgenmsg and the like.
func New(kind uint16, flags int, header ...byte) Message {
	m := make(Message, unix.SizeofNlMsghdr, 256)
	binary.NativeEndian.PutUint16(m[4:], kind)
	binary.NativeEndian.PutUint16(m[6:], unix.NLM_F_REQUEST|uint16(flags))
	return padded(append(m, header...))
}

// padded fills up to a multiple of four bytes, where every attribute begins.
func padded(m Message) Message {
	for len(m)%unix.NLA_ALIGNTO != 0 {
		m = append(m, 0)
	}
	return m
}

// Bytes adds an attribute.
func (m *Message) Bytes(kind uint16, value []byte) {
	*m = binary.NativeEndian.AppendUint16(*m, uint16(unix.SizeofNlAttr+len(value)))
	*m = binary.NativeEndian.AppendUint16(*m, kind)
	*m = padded(append(*m, value...))
}

// Text adds a string, which ends with a zero byte.
func (m *Message) Text(kind uint16, value string) { m.Bytes(kind, append([]byte(value), 0)) }

// Big adds a number in network byte order, as netfilter wants it.
func (m *Message) Big(kind uint16, value uint32) {
	m.Bytes(kind, binary.BigEndian.AppendUint32(nil, value))
}

// Native adds a number in the machine's byte order, as routing wants it.
func (m *Message) Native(kind uint16, value uint32) {
	m.Bytes(kind, binary.NativeEndian.AppendUint32(nil, value))
}

// Nest adds an attribute that holds those which fill adds. Its length is
// bounded by 64 KiB, the most that its field can say.
func (m *Message) Nest(kind uint16, fill func()) {
	start := len(*m)
	m.Bytes(kind|unix.NLA_F_NESTED, nil)
	fill()
	binary.NativeEndian.PutUint16((*m)[start:], uint16(len(*m)-start))
}

// Answer is one message of the kernel.
type Answer struct {
	Type, Flags uint16
	Sequence    uint32
	Body        []byte
}

// Attributes finds the attributes behind a header of so many bytes, the last
// of each kind.
func (a Answer) Attributes(header int) map[uint16][]byte {
	found := map[uint16][]byte{}
	if len(a.Body) < header {
		return found
	}
	rest := a.Body[header:]
	for len(rest) >= unix.SizeofNlAttr {
		size := int(binary.NativeEndian.Uint16(rest))
		if size < unix.SizeofNlAttr || size > len(rest) {
			break
		}
		found[binary.NativeEndian.Uint16(rest[2:])&^unix.NLA_F_NESTED] = rest[unix.SizeofNlAttr:size]
		rest = rest[min(aligned(size), len(rest)):]
	}
	return found
}

func aligned(size int) int {
	return (size + unix.NLA_ALIGNTO - 1) &^ (unix.NLA_ALIGNTO - 1)
}

// answers cuts what one read has brought.
func answers(piece []byte) []Answer {
	var list []Answer
	for len(piece) >= unix.SizeofNlMsghdr {
		size := int(binary.NativeEndian.Uint32(piece))
		if size < unix.SizeofNlMsghdr || size > len(piece) {
			break
		}
		list = append(list, Answer{
			Type: binary.NativeEndian.Uint16(piece[4:]), Flags: binary.NativeEndian.Uint16(piece[6:]),
			Sequence: binary.NativeEndian.Uint32(piece[8:]), Body: piece[unix.SizeofNlMsghdr:size],
		})
		piece = piece[min(aligned(size), len(piece)):]
	}
	return list
}

// failure is the error of an NLMSG_ERROR; nil for an acknowledgement.
func (a Answer) failure() error {
	if len(a.Body) < 4 {
		return unix.EBADMSG
	}
	if code := int32(binary.NativeEndian.Uint32(a.Body)); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}
