package serve

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/accept"
	"claudebox/internal/network/helper"
)

// carry serves the ports of the host that lead into the sandbox, and those of the sandbox that lead to the host.
func (s *server) carry(g helper.Given) {
	room, v6 := make(chan struct{}, mostCarried), newInside6(g.Inside6)
	for _, l := range g.Outside {
		go accept.Each(l, room, func(conn net.Conn) { //nolint:errcheck // it ends with the listener
			if c := conn.(*net.TCPConn); s.stack.Publish(c, l.Port) != nil {
				v6.carry(c, l.Port)
			}
		})
	}
	for _, l := range g.Inside {
		go accept.Each(l, room, func(inner net.Conn) { //nolint:errcheck // as above
			outer, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(l.Port))))
			relay(inner, outer, err)
		})
	}
}

// mostCarried is how many connections are carried at the same time. More wait in the listeners' queues.
const mostCarried = 1024

// relay is [accept.Join] for TCP connections. failed is why there is no second one: the first one is reset then.
func relay(first, second net.Conn, failed error) {
	if failed != nil {
		_ = first.(*net.TCPConn).SetLinger(0)
		first.Close()
		return
	}
	accept.Join(first, second)
}

// inside6 is a pool of sockets for connections to the sandbox's [::1]. The stage made them in the sandbox's
// network, since a kernel drops packets for [::1] that come from an interface. Each socket serves one connection
// after the other.
type inside6 chan int

func newInside6(fds []int) inside6 {
	pool := make(inside6, len(fds))
	for _, fd := range fds {
		disconnect(fd) // the previous helper may have left it connected
		pool <- fd
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
func (p inside6) carry(outer net.Conn, port uint16) {
	if cap(p) == 0 {
		relay(outer, nil, errors.New("no IPv6"))
		return
	}
	fd := <-p
	defer func() { disconnect(fd); p <- fd }()
	inner, err := connect(fd, port)
	relay(outer, inner, err)
}

// connect connects a socket to a port of [::1]. The connection that it returns has a descriptor of its own.
func connect(fd int, port uint16) (net.Conn, error) {
	err := unix.Connect(fd, &unix.SockaddrInet6{Port: int(port), Addr: netip.IPv6Loopback().As16()})
	if err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return nil, err
	}
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(own), "inside")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err == nil {
		err = errors.Join(raw.Write(func(fd uintptr) bool {
			number, failed := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
			if err = failed; err == nil && number != 0 {
				err = syscall.Errno(number)
			}
			if err != nil {
				return true
			}
			_, err = unix.Getpeername(int(fd))
			return !errors.Is(err, unix.ENOTCONN)
		}), err)
	}
	if err != nil {
		conn.Close()
	}
	return conn, err
}
