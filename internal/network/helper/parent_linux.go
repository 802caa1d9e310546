package helper

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"claudebox/internal/network/link"
)

// ParentConn is the helper's descriptor of the socket to claudebox.
type ParentConn struct{ conn wire }

// Parent returns the connection to the claudebox that started this process.
func Parent() (ParentConn, error) {
	file := os.NewFile(Socket, "claudebox")
	conn, err := net.FileConn(file)
	if err != nil {
		return ParentConn{}, fmt.Errorf("this program is started by claudebox alone: %w", err)
	}
	file.Close()
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return ParentConn{}, fmt.Errorf("this program is started by claudebox alone")
	}
	return ParentConn{wire{unixConn}}, nil
}

// Config reads the first message of claudebox.
func (p ParentConn) Config() (c Config, err error) {
	if err = p.conn.receive(&c); err == nil {
		c.Roots, err = p.conn.receiveBytes()
	}
	return c, err
}

// Given is a sandbox's network, as descriptors.
type Given struct {
	Kind      link.Kind
	Interface int
	Inside    []Listener // on the sandbox's loopback; their ports are the host's
	Outside   []Listener // on the host's; their ports are the sandbox's
	Inside6   []int      // sockets of the sandbox's network, see [link.Made]
	Log       *os.File   // nil: there is no log
}

// Listener accepts connections for a port on the other side.
type Listener struct {
	net.Listener
	Port uint16
}

// Attached receives the sandbox's network. An error means that claudebox has ended, or a bug.
func (p ParentConn) Attached() (g Given, err error) {
	var a attach
	if err := p.conn.receive(&a); err != nil {
		return g, err
	}
	fds, err := p.conn.receiveDescriptors()
	if err != nil {
		return g, err
	}
	want := 1 + len(a.Out) + a.Sockets6 + len(a.In)
	if a.Log {
		want++
	}
	if len(fds) != want {
		return g, fmt.Errorf("bug: %d descriptors; want %d", len(fds), want)
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	g.Kind, g.Interface = a.Kind, fds[0]
	if err := unix.SetNonblock(g.Interface, true); err != nil {
		return g, err
	}
	fds = fds[1:]
	if g.Inside, err = listeners(fds[:len(a.Out)], a.Out); err != nil {
		return g, err
	}
	fds = fds[len(a.Out):]
	g.Inside6, fds = fds[:a.Sockets6], fds[a.Sockets6:]
	if g.Outside, err = listeners(fds[:len(a.In)], a.In); err != nil {
		return g, err
	}
	if a.Log {
		g.Log = os.NewFile(uintptr(fds[len(a.In)]), "log")
	}
	return g, nil
}

// listeners returns the listeners of descriptors, each with its port.
func listeners(fds []int, ports []uint16) (list []Listener, err error) {
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "listener")
		l, err := net.FileListener(file)
		file.Close()
		if err != nil {
			return nil, err
		}
		list = append(list, Listener{l, ports[i]})
	}
	return list, nil
}

// Ready tells claudebox that the network is being served.
func (p ParentConn) Ready() error { return p.conn.send(answer{}) }

// Refuse tells claudebox why the network cannot be served, and returns the same error.
func (p ParentConn) Refuse(err error) error {
	_ = p.conn.send(answer{Error: err.Error()})
	return err
}

// Asked waits until claudebox asks for a report. An error means that claudebox has ended.
func (p ParentConn) Asked() (r Request, err error) {
	err = p.conn.receive(&r)
	return r, err
}

// Tell sends a report, and why nothing was opened; nil: it was, or nothing was to be.
func (p ParentConn) Tell(r Report, fault error) error {
	said := reply{Report: r}
	if fault != nil {
		said.Error = fault.Error()
	}
	return p.conn.send(said)
}
