// Package accept serves the connections of a listener, so many at once, and joins two connections.
package accept

import (
	"errors"
	"io"
	"net"
	"sync"
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

// Join copies between two connections until both have ended, and closes them. The end of one's data ends the data of
// the other one; after an error both are reset, where they can be.
func Join(a, b net.Conn) {
	defer a.Close()
	defer b.Close()
	var both sync.WaitGroup
	both.Go(func() { copyTo(a, b) })
	both.Go(func() { copyTo(b, a) })
	both.Wait()
}

// copyTo copies until the end of from, and then ends the data of to.
func copyTo(to, from net.Conn) {
	_, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err == nil && ok && half.CloseWrite() == nil {
		return
	}
	for _, c := range []net.Conn{to, from} {
		if stream, ok := c.(interface{ SetLinger(seconds int) error }); ok && err != nil {
			_ = stream.SetLinger(0)
		}
		c.Close()
	}
}
