package inside

import (
	"errors"
	"net"
	"strings"

	"claudebox/internal/linux/accept"
	"claudebox/internal/nix/nixdaemon"
)

// maxClients is how many clients are served at once; further ones wait to be accepted.
const maxClients = 256

// greeting is the version of the daemon that clients are told.
const greeting = "claudebox"

// Serve answers the clients of listener until it is closed, and returns that error.
// A client can end only its own connection.
func Serve(listener net.Listener, host *Host) error {
	return accept.Each(listener, make(chan struct{}, maxClients), func(conn net.Conn) { serve(conn, host) })
}

// client is one connection that is served.
type client struct {
	*nixdaemon.Server
	host *Host
}

// serve answers one client until it hangs up or has to be disconnected.
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

// do reads the arguments of a request and writes the answer. It reports whether the client can go on.
func (c *client) do(number uint64) (goesOn bool) {
	o := operations[number]
	if o.answer == nil {
		return c.refuse(number, o)
	}
	o.answer(c)
	return true
}

// gone reports whether err is the end of the connection rather than a breach of the protocol.
func gone(err error) bool {
	return !errors.Is(err, nixdaemon.ErrProtocol)
}

// oneLine returns the message of an error on one line, for a client.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
