package link

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Conn is a stream socket between claudebox and a process of a network. A message is its length and JSON, and may carry
// descriptors.
type Conn struct{ *net.UnixConn }

// Pair returns the two ends of a pair of connected sockets.
func Pair() (ours, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(pair[0]), "our socket"), os.NewFile(uintptr(pair[1]), "their socket"), nil
}

// Open returns the Conn of a socket, which it closes.
func Open(socket *os.File) (Conn, error) {
	defer socket.Close()
	conn, err := net.FileConn(socket)
	if err != nil {
		return Conn{}, err
	}
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return Conn{}, errors.New("not a socket of this machine")
	}
	return Conn{c}, nil
}

const (
	longest         = 16 << 20 // bytes of a message
	mostDescriptors = 253      // the kernel's bound for one message (SCM_MAX_FD)
	headSize        = 4
)

// Send sends a message with descriptors.
func (c Conn) Send(message any, fds ...int) error {
	if len(fds) > mostDescriptors {
		return fmt.Errorf("%d ports are too many", len(fds))
	}
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	if _, _, err = c.WriteMsgUnix(head, rights, nil); err == nil {
		_, err = c.Write(text)
	}
	return err
}

// Receive reads a message and the descriptors that it carries.
func (c Conn) Receive(message any) (fds []int, err error) {
	head, rights := make([]byte, headSize), make([]byte, unix.CmsgSpace(4*mostDescriptors))
	n, m, _, _, err := c.ReadMsgUnix(head, rights)
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err == nil && m > 0 {
		fds, err = descriptors(rights[:m])
	}
	if err == nil {
		_, err = io.ReadFull(c, head[n:])
	}
	if err != nil {
		return fds, err
	}
	size := binary.BigEndian.Uint32(head)
	if size > longest {
		return fds, fmt.Errorf("bug: a message of %d bytes", size)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(c, text); err != nil {
		return fds, err
	}
	return fds, json.Unmarshal(text, message)
}

func descriptors(rights []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errors.New("bug: no descriptors came"), err)
	}
	return unix.ParseUnixRights(&messages[0])
}
