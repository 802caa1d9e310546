package serve

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// inside6 is a pool of sockets for connections to the sandbox's [::1]. The stage made them in the sandbox's
// network, since a kernel drops packets for [::1] that come from an interface. Each socket serves one connection
// after the other.
type inside6 chan *os.File

func newInside6(fds []int) inside6 {
	pool := make(inside6, len(fds))
	for _, fd := range fds {
		disconnect(fd) // the previous helper may have left it connected
		pool <- os.NewFile(uintptr(fd), "inside")
	}
	return pool
}

// disconnect ends a socket's connection, so that the socket can be connected again (connect(2), AF_UNSPEC).
func disconnect(fd int) {
	unspecified := unix.RawSockaddr{Family: unix.AF_UNSPEC}
	_, _, _ = unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&unspecified)),
		unsafe.Sizeof(unspecified))
}

// carry carries a connection of the host to a port of the sandbox's [::1]. It waits while all sockets are in use.
func (p inside6) carry(outer *net.TCPConn, port uint16) {
	defer outer.Close()
	if cap(p) == 0 {
		_ = outer.SetLinger(0)
		return
	}
	socket := <-p
	defer func() { p <- socket }()
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	defer func() { _ = raw.Control(func(fd uintptr) { disconnect(int(fd)) }) }()
	if connect(raw, port) != nil {
		_ = outer.SetLinger(0)
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		how := unix.SHUT_WR
		if _, err := copyPlainly(socket, outer); err != nil {
			_ = outer.SetLinger(0)
			how = unix.SHUT_RDWR // ends the other direction, too
		}
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), how) })
	})
	both.Go(func() {
		if _, err := copyPlainly(outer, socket); err != nil {
			_ = outer.SetLinger(0)
			outer.Close()
			return
		}
		_ = outer.CloseWrite()
	})
	both.Wait()
}

// copyPlainly copies by read(2) and write(2). io.Copy alone might use calls for files that this process is
// not allowed.
func copyPlainly(to io.Writer, from io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{to}, struct{ io.Reader }{from})
}

// connect connects a socket to a port of [::1], and waits until it is connected.
func connect(raw syscall.RawConn, port uint16) (err error) {
	to := &unix.SockaddrInet6{Port: int(port), Addr: netip.IPv6Loopback().As16()}
	begun := false
	waited := raw.Write(func(fd uintptr) bool {
		if !begun {
			begun = true
			err = unix.Connect(int(fd), to)
			return !errors.Is(err, unix.EINPROGRESS)
		}
		number, failed := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		if err = failed; err == nil && number != 0 {
			err = syscall.Errno(number)
		}
		if err != nil {
			return true
		}
		_, err = unix.Getpeername(int(fd))
		return !errors.Is(err, unix.ENOTCONN)
	})
	return errors.Join(waited, err)
}
