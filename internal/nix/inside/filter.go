package inside

import (
	"errors"
	"net"
	"strings"

	"claudebox/internal/nix/nixdaemon"
)

// Clients are served that many at once; further ones wait to be accepted.
const maxClients = 256

// greeting is what clients are told as the daemon's version.
const greeting = "claudebox"

// Serve answers the clients of a listener until that is closed, and returns
// why. Whatever a client does ends nobody's connection but its own.
func Serve(listener net.Listener, host *Host) error {
	seats := make(chan struct{}, maxClients)
	for {
		seats <- struct{}{}
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer func() { <-seats }()
			serve(conn, host)
		}()
	}
}

// client is one that is served.
type client struct {
	*nixdaemon.Server
	host *Host
}

// serve answers one client, until it goes or has to.
func serve(conn net.Conn, host *Host) {
	defer conn.Close()
	c := &client{nixdaemon.NewServer(conn), host}
	if c.Handshake(greeting) != nil {
		return
	}
	for {
		number, err := c.Next()
		if err != nil {
			return
		}
		goesOn := c.do(number)
		if breach := c.Err(); breach != nil && !gone(breach) {
			c.Refuse(oneLine(breach))
			goesOn = false
		}
		if c.Send() != nil || !goesOn {
			c.Leave()
			return
		}
	}
}

// do reads what is left of a request, and writes the answer.
func (c *client) do(number uint64) (goesOn bool) {
	o := operations[number]
	if o.answer == nil {
		return c.refuse(number, o)
	}
	o.answer(c)
	return true
}

// gone tells an end of the connection from a breach of the protocol.
func gone(err error) bool {
	return !errors.Is(err, nixdaemon.ErrProtocol)
}

// oneLine is an error as a client is told it.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
