package nixdaemon

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
)

// Client speaks with a Nix daemon over one connection, which is made when it is
// first needed: a launch whose paths are all there needs none. Its methods
// may be called from several goroutines; operations run one after the other.
//
// The daemon protects what the connection pinned (temporary roots, results of
// builds) from the garbage collector until the connection ends. So a connection
// is never repaired or replaced: after a cancelled context, an error of the stream
// or a breach of the protocol it is closed, and every later call returns an error. Keep a
// Client open until the sandbox runs (and after that for as long as nothing else protects
// the paths), and close it.
type Client struct {
	Socket  string
	Options Options

	dialing sync.Mutex
	stream  *stream // nil: there is no connection yet
}

// connect makes the connection, if there is none yet.
func (c *Client) connect(ctx context.Context) (s *stream, err error) {
	c.dialing.Lock()
	defer c.dialing.Unlock()
	if c.stream == nil {
		c.stream, err = dial(ctx, c.Socket, &c.Options)
	}
	return c.stream, err
}

// do runs requests of one kind and returns the first error. It checks the words of
// all of them before it sends any.
func (c *Client) do(ctx context.Context, requests ...request) error {
	if len(requests) == 0 {
		return nil
	}
	for _, r := range requests {
		for _, word := range r.words {
			if err := r.op.takes(word); err != nil {
				return explain(r.op.does, err)
			}
		}
	}
	s, err := c.connect(ctx)
	if err != nil {
		return err
	}
	return s.do(ctx, requests)
}

// Info is what the daemon said about itself in the handshake. There must be a
// connection: Info panics otherwise.
func (c *Client) Info() Info { return c.stream.info }

// Close ends the connection. The daemon then drops its pins, and
// stops a build that runs for it. Without a connection Close does nothing.
func (c *Client) Close() error {
	c.dialing.Lock()
	defer c.dialing.Unlock()
	if c.stream == nil {
		return nil
	}
	return c.stream.close()
}

// Alive returns nil if the connection is still there, and with it its pins, or an error
// that says why not. It sends nothing, and waits for an operation that runs. There must be a
// connection: Alive panics otherwise.
func (c *Client) Alive() error {
	c.stream.mu.Lock()
	defer c.stream.mu.Unlock()
	return explain("keep the connection to the Nix daemon", c.stream.ready())
}

// Watch returns a function that waits until either side ends the connection.
// Otherwise the end of the daemon is noticed only at the next request, and until then
// nothing is pinned. There must be a connection: Watch panics otherwise.
func (c *Client) Watch() (wait func(), err error) {
	file, err := c.stream.conn.File() // a duplicate, since reads on one descriptor wait for each other
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

// stream is a connection with its state. One operation runs on it at a time.
type stream struct {
	mu    sync.Mutex // held for one operation
	conn  *net.UnixConn
	enc   encoder
	dec   *decoder
	info  Info
	opts  *Options // the client's
	notes []string // the last messages of the current operation
	// broken says why the connection cannot be used any more; nil while it can.
	broken error
}

func (s *stream) close() error {
	err := s.hangUp() // before the lock: this ends an operation that waits for the daemon
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return nil
	}
	s.broken = net.ErrClosed
	return err
}

// ready checks, before a request is sent, that the connection has not ended and that no
// unexpected bytes wait. Without it, only the request that needs the daemon would
// notice that it died a minute ago.
func (s *stream) ready() error {
	if s.broken != nil {
		return s.broken
	}
	raw, err := s.conn.SyscallConn()
	some := false
	if err == nil {
		if failed := raw.Read(func(fd uintptr) bool { some, err = waiting(fd); return true }); failed != nil {
			err = failed
		}
	}
	switch {
	case err != nil:
		return s.breakWith(caused{ErrBroken, errnoOf(err)})
	case some || s.dec.r.Buffered() > 0:
		return s.breakWith(errOutOfTurn)
	}
	return nil
}

var errOutOfTurn = caused{ErrProtocol, errors.New("the daemon spoke out of turn")}

// waiting reports whether bytes wait at a socket. The end of the connection is an error.
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

// breakWith closes the connection for good and notes why; it returns cause.
func (s *stream) breakWith(cause error) error {
	if s.broken == nil {
		s.broken = cause
		if !errors.Is(cause, ErrBroken) {
			s.broken = caused{ErrBroken, cause}
		}
	}
	_ = s.hangUp()
	return cause
}

// hangUp shuts the connection down and closes it, even if other descriptors of it are open.
func (s *stream) hangUp() error {
	_, _ = s.conn.CloseRead(), s.conn.CloseWrite()
	return s.conn.Close()
}

// guard runs talk, which uses the connection, and hangs up when ctx ends. A stream
// left in the middle of a message is out of step, so whatever stops talk half way ends the
// connection (also a cancellation that comes too late to stop talk).
func (s *stream) guard(ctx context.Context, talk func() error) error {
	stop := context.AfterFunc(ctx, func() { _ = s.hangUp() })
	err := talk()
	switch {
	case !stop():
		return s.breakWith(context.Cause(ctx))
	case err != nil:
		return s.breakWith(named(err))
	}
	return nil
}

func (s *stream) flush() error {
	defer s.enc.buf.Reset()
	_, err := s.conn.Write(s.enc.buf.Bytes())
	return err
}
