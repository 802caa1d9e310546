package sockets

import (
	"errors"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
)

// A program in a sandbox sent a TCP socket with SO_LINGER: who closed it last waited for an hour.
func TestNobodySendsDescriptorsToASocket(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	must.Do(t, err)
	defer dir.Close()
	l, err := Listen(dir, "s")
	must.Do(t, err)
	defer l.Close()
	knows := errors.New("not asked")
	raw, err := l.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { _, knows = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSRIGHTS) })
	}
	must.Do(t, err)
	if knows != nil {
		t.Skip("the kernel is older than 6.16")
	}
	c, err := Dial(dir, "s")
	must.Do(t, err)
	defer c.Close()
	if _, _, err := c.(*net.UnixConn).WriteMsgUnix([]byte("x"), unix.UnixRights(int(dir.Fd())), nil); !errors.Is(err, unix.EPERM) {
		t.Errorf("a descriptor was sent: %v", err)
	}
	if _, err := c.Write([]byte("x")); err != nil {
		t.Error(err)
	}
}
