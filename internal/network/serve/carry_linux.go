package serve

import (
	"io"
	"net"
	"strconv"
	"sync"

	"claudebox/internal/linux/accept"
	"claudebox/internal/network/helper"
)

// carry serves the ports of the host that lead into the sandbox, and those of the sandbox that lead to the host.
func (s *server) carry(g helper.Given) error {
	room, v6 := make(chan struct{}, mostCarried), newInside6(g.Inside6)
	for _, l := range g.Outside {
		go accept.Each(l, room, func(conn net.Conn) { //nolint:errcheck // it ends with the listener
			if c := conn.(*net.TCPConn); s.stack.Publish(c, l.Port) != nil {
				v6.carry(c, l.Port)
			}
		})
	}
	for _, l := range g.Inside {
		go accept.Each(l, room, func(c net.Conn) { outward(c.(*net.TCPConn), l.Port) }) //nolint:errcheck // as above
	}
	return nil
}

// mostCarried is how many connections are carried at the same time. More wait in the listeners' queues.
const mostCarried = 1024

// outward carries a connection of the sandbox to a port of the host's 127.0.0.1.
func outward(inner *net.TCPConn, port uint16) {
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		_ = inner.SetLinger(0)
		inner.Close()
		return
	}
	outer := conn.(*net.TCPConn)
	var both sync.WaitGroup
	both.Go(func() { copyOneWay(outer, inner) })
	both.Go(func() { copyOneWay(inner, outer) })
	both.Wait()
	inner.Close()
	outer.Close()
}

// copyOneWay copies until the end of the data, and then ends the data of the other connection. After an error it
// resets both.
func copyOneWay(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		_ = to.SetLinger(0)
		_ = from.SetLinger(0)
		to.Close()
		from.Close()
		return
	}
	_ = to.CloseWrite()
}
