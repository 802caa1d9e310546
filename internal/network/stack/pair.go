package stack

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"

	"claudebox/internal/network/gate"
)

// pair is a connection with the sandbox (inner) and the connection outside to which it leads (outer). The end of one
// connection's data ends the data of the other one; a reset of one resets the other.
type pair struct {
	inner *inner
	outer outer
	open  *openFlow
	opens func(host string) string // see [gate.Gate.Answer]
	once  sync.Once
}

// newPair makes a pair that has no inner connection yet.
func newPair(conn *net.TCPConn, open *openFlow) *pair {
	p := &pair{outer: outer{conn, true}, open: open}
	open.end = p.breakOff
	return p
}

// lingerTime is how long the rest of the data may take to go out after the sandbox has reset the connection.
const lingerTime = 5 * time.Second

// breakOff resets both connections.
func (p *pair) breakOff() {
	p.once.Do(func() {
		reset(p.outer.Conn.(*net.TCPConn))
		p.inner.abort()
	})
}

// run copies in both directions until both have ended, and closes the connections. Each may buffer as many bytes as
// size says. A gate, unless it is nil, inspects what the client sends; refused is why it refused that.
func (p *pair) run(ctx context.Context, size func() int64, g *gate.Gate) (refused *gate.Refused) {
	p.inner.resize(size())
	vanished := waiter.NewFunctionEntry(waiter.EventHUp|waiter.EventErr, func(waiter.EventMask) {
		go func() {
			if p.inner.isReset() { // data that came before the reset still goes out
				time.AfterFunc(lingerTime, p.breakOff)
			}
		}()
	})
	p.inner.queue.EventRegister(&vanished)
	defer p.inner.queue.EventUnregister(&vanished)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	inner, outer := p.inner, p.outer.Conn.(*net.TCPConn)
	piece := func() int { return int(min(size()/2, longestPiece)) }
	var both sync.WaitGroup
	both.Go(func() {
		defer cancel()
		to, err := counted{inner, &p.open.received}, error(nil)
		if g != nil {
			err = g.Server(outer, to)
		}
		if err == nil {
			err = copyPieces(to, p.outer, piece, forEver)
		}
		p.endOther(err, inner)
	})
	to, err := counted{outer, &p.open.sent}, error(nil)
	if g != nil {
		err = g.Client(ctx, inner, to)
	}
	if err == nil {
		err = copyPieces(to, inner, piece, forEver)
	}
	if errors.As(err, &refused) && p.open.sent.Load()+p.open.received.Load() == 0 {
		p.answer(g.Answer(refused, p.opens))
	}
	p.endOther(err, outer)
	both.Wait()
	p.once.Do(func() {
		inner.endpoint.Close()
		outer.Close()
	})
	return refused
}

// answer ends a connection with an answer of ours, if there is one.
func (p *pair) answer(text []byte) {
	if len(text) == 0 {
		return
	}
	p.once.Do(func() {
		reset(p.outer.Conn.(*net.TCPConn))
		_, _ = p.inner.Write(text)
		p.inner.endpoint.Close()
	})
}

// endOther ends the data of one connection after that of the other one has ended with an error, usually io.EOF.
func (p *pair) endOther(err error, to interface{ CloseWrite() error }) {
	if errors.Is(err, io.EOF) {
		_ = to.CloseWrite()
	} else {
		p.breakOff()
	}
}

// source is a connection that is copied from.
type source interface {
	// receive reads at most size bytes. It waits for them without holding a buffer, and for no longer than most; 0:
	// for as long as it takes. The caller gives the bytes back to the pool.
	receive(size int, most time.Duration) ([]byte, error)
}

// longestPiece is how many bytes are copied at once, at most.
const longestPiece = 256 << 10

// pieces is a pool of buffers.
var pieces sync.Pool

func takePiece(size int) []byte {
	if b, ok := pieces.Get().(*[]byte); ok && cap(*b) == size {
		return (*b)[:size]
	}
	return make([]byte, size)
}

func givePiece(b []byte) { pieces.Put(&b) }

// copyPieces copies pieces of at most so many bytes as size says until it fails; the end of the data is io.EOF. It
// waits for each piece as long as patience says.
func copyPieces(to io.Writer, from source, size func() int, patience func() time.Duration) error {
	for {
		b, err := from.receive(size(), patience())
		if err != nil {
			return err
		}
		_, err = to.Write(b)
		givePiece(b)
		if err != nil {
			return err
		}
	}
}

func forEver() time.Duration { return 0 }

// counted adds the bytes that it writes to a counter.
type counted struct {
	io.Writer
	count *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.count.Add(int64(n))
	return n, err
}

// inner is the sandbox's side of a connection or an exchange of datagrams.
type inner struct {
	net.Conn // of package gonet
	endpoint tcpip.Endpoint
	queue    *waiter.Queue
}

func (c *inner) receive(size int, most time.Duration) ([]byte, error) {
	if err := c.await(most); err != nil {
		return nil, err
	}
	b := takePiece(size)
	n, err := c.Read(b)
	if err != nil {
		givePiece(b)
	}
	return b[:n], err
}

func (c *inner) await(most time.Duration) error {
	const toRead = waiter.ReadableEvents | waiter.EventHUp | waiter.EventErr
	entry, readable := waiter.NewChannelEntry(toRead)
	c.queue.EventRegister(&entry)
	defer c.queue.EventUnregister(&entry)
	if c.endpoint.Readiness(toRead) != 0 {
		return nil
	}
	var over <-chan time.Time
	if most > 0 {
		timer := time.NewTimer(most)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-readable:
		return nil
	case <-over:
		return os.ErrDeadlineExceeded
	}
}

// CloseWrite ends the data to the sandbox.
func (c *inner) CloseWrite() error {
	c.endpoint.Shutdown(tcpip.ShutdownWrite)
	return nil
}

func (c *inner) abort() { c.endpoint.Abort() }

func (c *inner) resize(size int64) {
	c.endpoint.SocketOptions().SetReceiveBufferSize(size, true)
	c.endpoint.SocketOptions().SetSendBufferSize(size, true)
}

// isReset reports whether the sandbox has reset the connection.
func (c *inner) isReset() bool { return tcp.EndpointState(c.endpoint.State()) == tcp.StateError }

// outer is a socket of the host.
type outer struct {
	net.Conn
	isStream bool
}

func (o outer) receive(size int, most time.Duration) (b []byte, err error) {
	if most > 0 {
		if err := o.SetReadDeadline(time.Now().Add(most)); err != nil {
			return nil, err
		}
	}
	raw, err := o.Conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil, err
	}
	n, failed := 0, error(nil)
	err = raw.Read(func(fd uintptr) bool {
		b = takePiece(size)
		for n, failed = unix.Read(int(fd), b); failed == unix.EINTR; {
			n, failed = unix.Read(int(fd), b)
		}
		if failed != nil {
			givePiece(b)
		}
		return failed != unix.EAGAIN
	})
	switch {
	case err != nil:
		return nil, err
	case failed != nil:
		return nil, failed
	case n == 0 && o.isStream:
		givePiece(b)
		return nil, io.EOF
	}
	return b[:n], nil
}
