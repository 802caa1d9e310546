package ports

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/network/netns"
	"claudebox/internal/network/relay"
)

// Inward are ports of the host that lead into a sandbox. They are taken before
// it starts: what another program has cannot be carried.
type Inward struct {
	listeners []net.Listener
}

// Take listens on ports of the host's 127.0.0.1.
func Take(list []int) (Inward, error) {
	var in Inward
	for _, port := range list {
		l, err := (&net.ListenConfig{Control: unpaced}).Listen(context.Background(), "tcp4", local(port).String())
		if err != nil {
			in.Close()
			return Inward{}, explain(port, err)
		}
		in.listeners = append(in.listeners, l)
	}
	return in, nil
}

func explain(port int, err error) error {
	op := "carry port " + strconv.Itoa(port) + " into the sandbox"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return diag.Errorf(op, "end the other program, or use another port", "something on this host listens on 127.0.0.1:%d already", port)
	case errors.Is(err, syscall.EACCES):
		return diag.Errorf(op, "use a port above 1023", "only root may listen on port %d", port)
	}
	return &diag.Error{Op: op, Err: err}
}

// Close gives the ports back. Connections go on.
func (in Inward) Close() {
	for _, l := range in.listeners {
		l.Close()
	}
}

// Serve carries what connects into a sandbox, until the ports are closed.
func (in Inward) Serve(ns netns.Namespace) {
	for _, l := range in.listeners {
		port := l.Addr().(*net.TCPAddr).Port
		go carry(l, func() (net.Conn, error) { return dialInside(ns, port) })
	}
}

// dialInside also looks on ::1, where what was told to listen on localhost
// often is.
func dialInside(ns netns.Namespace, port int) (net.Conn, error) {
	conn, err := ns.Dial(local(port))
	if errors.Is(err, syscall.ECONNREFUSED) {
		return ns.Dial(netip.AddrPortFrom(netip.IPv6Loopback(), uint16(port)))
	}
	return conn, err
}

// Outward lets a sandbox reach ports of the host's 127.0.0.1, at its own. The
// listeners are for the caller to close.
func Outward(ns netns.Namespace, list []int) ([]net.Listener, error) {
	var listeners []net.Listener
	for _, port := range list {
		l, err := ns.Listen(port)
		if err != nil {
			for _, l := range listeners {
				l.Close()
			}
			return nil, err
		}
		go carry(l, func() (net.Conn, error) { return (&net.Dialer{Control: unpaced}).Dial("tcp4", local(port).String()) })
		listeners = append(listeners, l)
	}
	return listeners, nil
}

// carry gives every connection of a listener one that dial makes.
func carry(l net.Listener, dial func() (net.Conn, error)) {
	for {
		from, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(10 * time.Millisecond) // out of descriptors: others have to end first
			continue
		}
		go func() {
			to, err := dial()
			if err != nil {
				refuse(from)
				return
			}
			relay.Both(from.(*net.TCPConn), to.(*net.TCPConn))
		}()
	}
}

// unpaced is for sockets on the host's loopback. Those on the sandbox's are.
func unpaced(_, _ string, raw syscall.RawConn) error {
	return raw.Control(func(fd uintptr) { netns.Unpaced(int(fd)) })
}

// refuse ends a connection with a reset: nobody is there.
func refuse(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
}

func local(port int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port))
}
