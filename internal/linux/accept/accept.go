// Package accept serves the connections of a listener, so many at once.
package accept

import (
	"errors"
	"net"
	"time"
)

// again is the pause after a connection that could not be accepted.
const again = 10 * time.Millisecond

// Each calls serve for each connection of a listener, in a goroutine of its own, as long as room has space: more wait
// in the listener's queue. It returns the error of a listener that was closed.
func Each(listener net.Listener, room chan struct{}, serve func(net.Conn)) error {
	for {
		room <- struct{}{}
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err != nil { // no descriptor is free, here or in the kernel: another connection has to end first
			<-room
			time.Sleep(again)
			continue
		}
		go func() {
			defer func() { <-room }()
			serve(conn)
		}()
	}
}
