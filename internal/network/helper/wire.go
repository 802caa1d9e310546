package helper

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"

	"golang.org/x/sys/unix"
)

// wire is the stream socket between claudebox and its helper. claudebox sends the [Config], the bytes of its
// Roots, an [attach] with descriptors, and at the end a [request]. The helper answers each of the last two with
// one message.
//
// A message is its length and JSON. A message with descriptors is followed by one byte that carries them.
type wire struct{ *net.UnixConn }

// longest bounds the length of a message.
const longest = 16 << 20

// send sends a message.
func (w wire) send(message any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return w.sendBytes(text)
}

func (w wire) sendBytes(text []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

// receive reads a message.
func (w wire) receive(message any) error {
	text, err := w.receiveBytes()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, message)
}

func (w wire) receiveBytes() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(w, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > longest {
		return nil, fmt.Errorf("bug: a message of %d bytes", n)
	}
	text := make([]byte, n)
	_, err := io.ReadFull(w, text)
	return text, err
}

// mostDescriptors is how many descriptors the kernel allows per message (SCM_MAX_FD).
const mostDescriptors = 253

// sendDescriptors sends descriptors with one byte.
func (w wire) sendDescriptors(fds []int) error {
	if len(fds) > mostDescriptors {
		return fmt.Errorf("%d ports are too many", len(fds))
	}
	_, _, err := w.WriteMsgUnix([]byte{0}, unix.UnixRights(fds...), nil)
	return err
}

// receiveDescriptors reads one byte and the descriptors that it carries.
func (w wire) receiveDescriptors() ([]int, error) {
	buffer, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4*mostDescriptors))
	n, m, _, _, err := w.ReadMsgUnix(buffer, rights)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, io.EOF
	}
	return descriptorsIn(rights[:m])
}

// descriptorsIn returns the descriptors that a message carried.
func descriptorsIn(rights []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	if len(messages) != 1 {
		return nil, errors.New("no descriptors came")
	}
	return unix.ParseUnixRights(&messages[0])
}
