package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
)

// Namespace is the network namespace of a process. It may be used from many
// goroutines; close it after them.
type Namespace struct{ user, net int }

// Of opens the network namespace of a child, which must have been started in
// one of its own, in a user namespace of its own.
func Of(pid int) (Namespace, error) {
	n := Namespace{user: -1, net: -1}
	for _, place := range []struct {
		fd   *int
		name string
	}{{&n.user, "user"}, {&n.net, "net"}} {
		path := fmt.Sprintf("/proc/%d/ns/%s", pid, place.name)
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			n.Close()
			return Namespace{}, &diag.Error{Op: "open the sandbox's network", Err: &os.PathError{Op: "open", Path: path, Err: err}, Remedy: "run `claudebox check`"}
		}
		*place.fd = fd
	}
	return n, nil
}

// Close lets go of the namespace. Sockets that were made in it keep it alive.
func (n Namespace) Close() { closeAll([]int{n.user, n.net}) }

func closeAll(fds []int) {
	for _, fd := range fds {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// Sockets makes sockets in the namespace, at most 64 at a time: non-blocking,
// closed on exec, the caller's to close. What they are is said as to
// socket(2).
func (n Namespace) Sockets(count, domain, kind, protocol int) ([]int, error) {
	if count < 1 || count > batch {
		return nil, fmt.Errorf("bug: %d sockets at a time", count)
	}
	fds, err := (&visit{
		user: uintptr(n.user), net: uintptr(n.net), count: count,
		domain: uintptr(domain), kind: uintptr(kind), protocol: uintptr(protocol),
	}).descriptors()
	if err != nil {
		return nil, &diag.Error{Op: "make a socket in the sandbox's network", Err: err, Remedy: "run `claudebox check`"}
	}
	return fds, nil
}

// RaiseLoopback brings the loopback interface up. The kernel adds its two
// addresses by itself.
func (n Namespace) RaiseLoopback() error {
	fds, err := n.Sockets(1, unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer closeAll(fds)
	lo, err := unix.NewIfreq("lo")
	if err == nil {
		err = unix.IoctlIfreq(fds[0], unix.SIOCGIFFLAGS, lo)
	}
	if err == nil {
		lo.SetUint16(lo.Uint16() | unix.IFF_UP)
		err = unix.IoctlIfreq(fds[0], unix.SIOCSIFFLAGS, lo)
	}
	if err != nil {
		return &diag.Error{Op: "bring the sandbox's loopback up", Err: err}
	}
	return nil
}

// Set writes a setting of the network: name is its path below /proc/sys/net.
// The file shows the namespace of whoever opens it, and is written with the
// rights of whoever writes.
func (n Namespace) Set(name, value string) error {
	path := append([]byte("/proc/sys/net/"+name), 0)
	fds, err := (&visit{user: uintptr(n.user), net: uintptr(n.net), setting: &path[0]}).descriptors()
	if err == nil {
		_, err = unix.Write(fds[0], []byte(value))
		closeAll(fds)
	}
	if err != nil {
		return &diag.Error{Op: "set net/" + name + " of the sandbox's network", Err: err}
	}
	return nil
}

// Listen listens on a TCP port of the sandbox's 127.0.0.1. Only who is inside
// can connect; only this process accepts.
func (n Namespace) Listen(port int) (net.Listener, error) {
	fds, err := n.Sockets(1, unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	fd := fds[0]
	Unpaced(fd)
	err = unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		unix.Close(fd)
		return nil, &diag.Error{Op: "listen on port " + strconv.Itoa(port) + " of the sandbox", Err: err}
	}
	file := os.NewFile(uintptr(fd), "listener in the sandbox")
	defer file.Close()
	return net.FileListener(file) // which makes a copy of its own
}

// backlog is how many connections may wait to be accepted; the kernel bounds
// it by net.core.somaxconn.
const backlog = 4096

// Unpaced has what a TCP socket sends leave when it is written. Some hosts
// choose bbr for all connections, which sets a timer for each piece: over a
// loopback that takes more time than the rest. Every user may choose reno, and
// it never waits; where it cannot be had, all works, and slower. It has to be
// chosen before there is a connection: the timers stay. What a listener accepts
// is as the listener.
func Unpaced(fd int) {
	_ = unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno")
}

// Dial connects to a TCP port of the sandbox.
func (n Namespace) Dial(to netip.AddrPort) (net.Conn, error) {
	domain := unix.AF_INET6
	var address unix.Sockaddr = &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
	if to.Addr().Is4() {
		domain, address = unix.AF_INET, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	}
	fds, err := n.Sockets(1, domain, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	Unpaced(fds[0])
	file := os.NewFile(uintptr(fds[0]), "connection into the sandbox")
	defer file.Close()
	if err := connect(file, address); err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(to), Err: err}
	}
	return net.FileConn(file)
}

// connect connects a non-blocking socket, and waits as the runtime waits for
// others.
func connect(file *os.File, address unix.Sockaddr) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	begun := false
	err = raw.Write(func(fd uintptr) bool {
		if !begun {
			begun = true
			failed = unix.Connect(int(fd), address)
			return !errors.Is(failed, unix.EINPROGRESS)
		}
		var code int
		if code, failed = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); failed == nil && code != 0 {
			failed = unix.Errno(code)
		}
		return true
	})
	return errors.Join(err, failed)
}
