package helper

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"claudebox/internal/network/link"
)

// ParentConn is the helper's descriptor of the socket to claudebox.
type ParentConn struct{ conn link.Conn }

// Parent returns the connection to the claudebox that started this process, and the [Config].
func Parent() (p ParentConn, c Config, err error) {
	if p.conn, err = link.Open(os.NewFile(Socket, "claudebox")); err != nil {
		return p, c, fmt.Errorf("this program is started by claudebox alone: %w", err)
	}
	c, err = readConfig(os.NewFile(ConfigFile, "configuration"))
	return p, c, err
}

// Given is a sandbox's network, as descriptors.
type Given struct {
	Kind      link.Kind
	Interface int
	Inside    []Listener // on the sandbox's loopback; their ports are the host's
	Outside   []Listener // on the host's; their ports are the sandbox's
	Inside6   []int      // sockets of the sandbox's network, see [link.Socket6]
	Log       *os.File   // nil: there is no log
}

// Listener accepts connections for a port on the other side.
type Listener struct {
	net.Listener
	Port uint16
}

// ReceiveNetwork receives the sandbox's network. An error means that claudebox has ended, or a bug.
func (p ParentConn) ReceiveNetwork() (g Given, err error) {
	var n link.Network
	fds, err := p.conn.Receive(&n)
	if err == nil && len(fds) != len(n.Ends) {
		err = fmt.Errorf("bug: %d descriptors; want %d", len(fds), len(n.Ends))
	}
	g.Kind = n.Kind
	for i := 0; i < len(fds) && err == nil; i++ {
		err = g.take(n.Ends[i], fds[i])
	}
	return g, err
}

func (g *Given) take(e link.End, fd int) error {
	switch e.What {
	case link.Interface:
		g.Interface = fd
		return unix.SetNonblock(fd, true)
	case link.Socket6:
		g.Inside6 = append(g.Inside6, fd)
		return nil
	}
	file := os.NewFile(uintptr(fd), string(e.What))
	if e.What == link.Log {
		g.Log = file
		return nil
	}
	defer file.Close()
	l, err := net.FileListener(file)
	if e.What == link.Inside {
		g.Inside = append(g.Inside, Listener{l, e.Port})
	} else {
		g.Outside = append(g.Outside, Listener{l, e.Port})
	}
	return err
}

// Ready tells claudebox that the network is being served.
func (p ParentConn) Ready() error { return p.conn.Send(reply{}) }

// Refuse tells claudebox why the network cannot be served, and returns the same error.
func (p ParentConn) Refuse(err error) error {
	_ = p.conn.Send(reply{Error: err.Error()})
	return err
}

// ReceiveRequest waits until claudebox asks for a report. An error means that claudebox has ended.
func (p ParentConn) ReceiveRequest() (r Request, err error) {
	_, err = p.conn.Receive(&r)
	return r, err
}

// SendReport sends a report, and why nothing was opened; nil: it was, or nothing was to be.
func (p ParentConn) SendReport(r Report, fault error) error {
	said := reply{Report: r}
	if fault != nil {
		said.Error = fault.Error()
	}
	return p.conn.Send(said)
}
