package nixdaemon

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
)

// Client is one connection to a Nix daemon. Its methods may be called from
// several goroutines; operations run one after the other.
//
// The daemon keeps what the connection pinned (temporary roots, results of
// builds) from the garbage collector until the connection ends. So a Client
// is never mended: after a cancelled context, a fault of the stream or a
// breach of the protocol it is closed, and every later call says so.
type Client struct {
	mu   sync.Mutex // held for one operation
	conn *net.UnixConn
	enc  encoder
	dec  *decoder
	info Info
	opts Options
	// notes are the last messages of the operation that runs.
	notes []string
	// broken is why the connection is of no use any more; nil while it is.
	broken error
}

// Info is what the daemon said of itself in the handshake.
func (c *Client) Info() Info { return c.info }

// Close ends the connection. The daemon then forgets what it pinned, and
// stops a build that runs for it.
func (c *Client) Close() error {
	err := c.hangUp() // before the lock: it ends an operation that waits
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return nil
	}
	c.broken = net.ErrClosed
	return err
}

// Alive reports whether the connection still holds its pins: nil, or why not.
// It sends nothing, and waits for an operation that runs.
func (c *Client) Alive() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return explain("keep the connection to the Nix daemon", c.ready())
}

// ready looks for an end or for words out of turn before a request is sent.
// Without it a daemon that died a minute ago would be noticed only by the
// request that needed it.
func (c *Client) ready() error {
	if c.broken != nil {
		return c.broken
	}
	raw, err := c.conn.SyscallConn()
	some := false
	if err == nil {
		if failed := raw.Read(func(fd uintptr) bool { some, err = waiting(fd); return true }); failed != nil {
			err = failed
		}
	}
	switch {
	case err != nil:
		return c.breakWith(caused{ErrBroken, bare(err)})
	case some || c.dec.r.Buffered() > 0:
		return c.breakWith(errOutOfTurn)
	}
	return nil
}

var errOutOfTurn = caused{ErrProtocol, errors.New("the daemon spoke out of turn")}

// waiting reports whether bytes wait at a socket. Its end is an error.
func waiting(fd uintptr) (bool, error) {
	n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	switch {
	case errors.Is(err, syscall.EAGAIN):
		return false, nil
	case err == nil && n == 0:
		err = syscall.ECONNRESET
	}
	return n > 0, err
}

// breakWith closes the connection for good.
func (c *Client) breakWith(cause error) error {
	if c.broken == nil {
		c.broken = cause
		if !errors.Is(cause, ErrBroken) {
			c.broken = caused{ErrBroken, cause}
		}
	}
	_ = c.hangUp()
	return cause
}

// hangUp ends the connection, whoever else has its descriptor.
func (c *Client) hangUp() error {
	_, _ = c.conn.CloseRead(), c.conn.CloseWrite()
	return c.conn.Close()
}

// Watch gives what waits until the connection ends, by either side. Without it a
// daemon that went is noticed by the next request, and until then nothing is
// pinned.
func (c *Client) Watch() (wait func(), err error) {
	file, err := c.conn.File() // reads on one descriptor wait for each other
	if err != nil {
		return nil, err
	}
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		conn.Close()
		return nil, err
	}
	return func() {
		defer conn.Close()
		_ = raw.Read(func(fd uintptr) bool { _, err := waiting(fd); return err != nil })
	}, nil
}

// guard runs talk, which speaks on the connection, until ctx ends. A stream
// left in the middle is out of step, so whatever stops talk half way (also a
// cancel that comes too late to matter) ends the connection.
func (c *Client) guard(ctx context.Context, talk func() error) error {
	stop := context.AfterFunc(ctx, func() { _ = c.hangUp() })
	err := talk()
	switch {
	case !stop():
		return c.breakWith(context.Cause(ctx))
	case err != nil:
		return c.breakWith(named(err))
	}
	return nil
}

func (c *Client) flush() error {
	defer c.enc.buf.Reset()
	_, err := c.conn.Write(c.enc.buf.Bytes())
	return err
}
