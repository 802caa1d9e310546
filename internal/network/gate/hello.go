package gate

import (
	"encoding/binary"
	"errors"
)

// longestHello bounds how many bytes of a tunnel are read before its client hello is
// complete. Today's hellos have two or three thousand.
const longestHello = 32 << 10

var (
	errShort     = errors.New("more is needed")
	errNotHello  = errors.New("not a TLS client hello")
	errNoName    = errors.New("a TLS client hello without a server name")
	errEncrypted = errors.New("an encrypted TLS client hello")
	errMore      = errors.New("a TLS client hello with more in its last record")
)

// Content types and extensions of TLS (RFC 8446, RFC 6066, RFC 9849; the
// draft of ESNI came before).
const (
	recordAlert     = 21
	recordHandshake = 22
	clientHello     = 1
	longestRecord   = 1 << 14

	extServerName = 0
	extECH        = 0xfe0d
	extESNI       = 0xffce
)

// isRecord reports whether a TLS record may begin with this byte.
func isRecord(first byte) bool { return first >= 20 && first <= 24 }

// serverName returns the name in the TLS client hello that a connection
// begins with; the hello may span many records. The error is errShort while the hello is not
// complete.
func serverName(begin []byte) (string, error) {
	message, err := handshake(begin)
	if err != nil {
		return "", err
	}
	h := cursor{rest: message}
	h.skip(2 + 32) // version, random
	h.vector(1)    // session
	h.vector(2)    // cipher suites
	h.vector(1)    // compression
	extensions := cursor{rest: h.vector(2)}
	if h.bad || len(h.rest) > 0 {
		return "", errNotHello
	}
	name := ""
	for len(extensions.rest) > 0 {
		kind, body := extensions.number(2), extensions.vector(2)
		switch {
		case extensions.bad:
			return "", errNotHello
		case kind == extECH || kind == extESNI:
			return "", errEncrypted
		case kind == extServerName && name != "":
			return "", errNotHello
		case kind == extServerName:
			if name = onlyName(body); name == "" {
				return "", errNotHello
			}
		}
	}
	if name == "" {
		return "", errNoName
	}
	return name, nil
}

// handshake joins the records of the first message and returns the message's body.
func handshake(begin []byte) ([]byte, error) {
	const header = 4 // of a message: type and length; that of a record has 5 bytes: type, version and length
	var message []byte
	for {
		if len(message) >= header {
			size := header + int(message[1])<<16 + int(binary.BigEndian.Uint16(message[2:]))
			switch {
			case message[0] != clientHello || size > longestHello:
				return nil, errNotHello
			case len(message) > size:
				return nil, errMore
			case len(message) == size:
				return message[header:], nil
			}
		}
		if len(begin) > 0 && begin[0] != recordHandshake || len(begin) > 1 && begin[1] != 3 {
			return nil, errNotHello
		}
		if len(begin) < 5 {
			return nil, errShort
		}
		size := int(binary.BigEndian.Uint16(begin[3:]))
		if size == 0 || size > longestRecord {
			return nil, errNotHello
		}
		if len(begin) < 5+size {
			return nil, errShort
		}
		message = append(message, begin[5:5+size]...)
		begin = begin[5+size:]
	}
}

// onlyName returns the one host name of a server_name extension; empty if there
// are more names or none, or one of another type.
func onlyName(body []byte) string {
	list := cursor{rest: body}
	names := cursor{rest: list.vector(2)}
	kind, name := names.number(1), names.vector(2)
	if list.bad || names.bad || len(list.rest) > 0 || len(names.rest) > 0 || kind != 0 {
		return ""
	}
	return string(name)
}

// cursor reads big-endian numbers and vectors. After a read past the end it is marked bad,
// and returns zeros.
type cursor struct {
	rest []byte
	bad  bool
}

func (c *cursor) skip(n int) []byte {
	if n > len(c.rest) {
		c.bad, c.rest = true, nil
		return nil
	}
	piece := c.rest[:n]
	c.rest = c.rest[n:]
	return piece
}

func (c *cursor) number(size int) int {
	n := 0
	for _, b := range c.skip(size) {
		n = n<<8 | int(b)
	}
	return n
}

// vector reads a vector after its length, which is a number of size bytes.
func (c *cursor) vector(size int) []byte { return c.skip(c.number(size)) }
