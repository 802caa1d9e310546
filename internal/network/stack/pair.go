package stack

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/waiter"

	"claudebox/internal/network/gate"
)

// pair is a connection with the sandbox and the one outside that it leads to.
// What is copied goes from the stack's memory to the kernel and back: no
// connection has a buffer of its own. An end becomes an end, a reset a reset.
type pair struct {
	inner *inner
	outer *net.TCPConn
	open  *open
	once  sync.Once
}

// lingerTime bounds how long what the sandbox said last may take to go out, when
// it has reset the connection.
const lingerTime = 5 * time.Second

// breakOff resets both connections.
func (p *pair) breakOff() {
	p.once.Do(func() {
		reset(p.outer)
		p.inner.abort()
	})
}

// run copies both ways until both are over. Where the connection is judged by
// what is said, the error is why it was broken off.
func (p *pair) run(ctx context.Context, judged bool) (refused error) {
	vanished := waiter.NewFunctionEntry(waiter.EventHUp|waiter.EventErr, func(waiter.EventMask) {
		go func() {
			if p.inner.failed() { // what has come before the reset still goes out
				time.AfterFunc(lingerTime, p.breakOff)
			}
		}()
	})
	p.inner.queue.EventRegister(&vanished)
	defer p.inner.queue.EventUnregister(&vanished)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var g *gate.Gate
	if judged {
		g = gate.New(p.open.flow.Name, p.open.flow.To.Port())
	}
	var other sync.WaitGroup
	other.Go(func() {
		p.down(g)
		cancel()
	})
	if refused = p.up(ctx, g); refused != nil {
		p.breakOff()
	}
	other.Wait()
	p.once.Do(func() {
		p.inner.endpoint.Close()
		p.outer.Close()
	})
	return refused
}

// up copies what the sandbox says. Its error is what the gate refused.
func (p *pair) up(ctx context.Context, g *gate.Gate) error {
	if g != nil {
		counted := &countedWriter{p.outer, p.open}
		err := g.Client(ctx, p.inner.TCPConn, counted)
		var no *gate.Refused
		switch {
		case errors.As(err, &no):
			return no
		case errors.Is(err, io.EOF):
			_ = p.outer.CloseWrite()
			return nil
		case err != nil:
			p.breakOff()
			return nil
		}
	}
	if p.drain() != nil {
		p.breakOff()
		return nil
	}
	_ = p.outer.CloseWrite()
	return nil
}

// down copies what comes from outside.
func (p *pair) down(g *gate.Gate) {
	err := error(nil)
	if g != nil {
		err = g.Server(p.outer, &received{p.inner.TCPConn, p.open})
	}
	if err == nil {
		err = p.fill()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		p.breakOff()
		return
	}
	p.inner.endpoint.Shutdown(tcpip.ShutdownWrite)
}

// errTaken ends a reading.
var errTaken = errors.New("enough has been read")

// taker writes a connection's data to a socket. The stack gives it a piece at a
// time, and lends the pieces only while it reads: all are written with the last.
type taker struct {
	fd     int
	expect int // bytes that are there, at least
	pieces [][]byte
	count  int
	taken  int // bytes that the socket has taken
	err    error
}

// mostTaken bounds what is written at a time: the stack can do nothing else for
// the connection meanwhile.
const mostTaken = 256 << 10

func (t *taker) Write(b []byte) (int, error) {
	t.pieces, t.count = append(t.pieces, b), t.count+len(b)
	if t.count < min(t.expect, mostTaken) && len(t.pieces) < cap(t.pieces) {
		return len(b), nil
	}
	for {
		if t.taken, t.err = unix.Writev(t.fd, t.pieces); t.err != unix.EINTR {
			return len(b), errTaken
		}
	}
}

// skipper takes so many bytes and drops them.
type skipper int

func (s *skipper) Write(b []byte) (int, error) {
	n := min(len(b), int(*s))
	*s -= skipper(n)
	if n < len(b) {
		return n, errTaken
	}
	return n, nil
}

// drain writes what the sandbox sends to the host's socket, until the sandbox
// has said all.
func (p *pair) drain() error {
	entry, readable := waiter.NewChannelEntry(waiter.ReadableEvents | waiter.EventHUp | waiter.EventErr)
	p.inner.queue.EventRegister(&entry)
	defer p.inner.queue.EventUnregister(&entry)
	raw, err := p.outer.SyscallConn()
	if err != nil {
		return err
	}
	pieces := make([][]byte, 0, mostPieces)
	for {
		var failed tcpip.Error
		t := taker{pieces: pieces}
		err := raw.Write(func(fd uintptr) bool {
			t = taker{fd: int(fd), pieces: pieces}
			t.expect, _ = p.inner.endpoint.GetSockOptInt(tcpip.ReceiveQueueSizeOption)
			_, failed = p.inner.endpoint.Read(&t, tcpip.ReadOptions{Peek: true})
			return t.err != unix.EAGAIN
		})
		clear(pieces[:len(t.pieces)])
		if err = errors.Join(err, t.err); err != nil {
			return err
		}
		switch failed.(type) {
		case nil:
			rest := skipper(t.taken)
			p.inner.endpoint.Read(&rest, tcpip.ReadOptions{})
			p.open.sent.Add(int64(t.taken))
		case *tcpip.ErrWouldBlock:
			<-readable
		case *tcpip.ErrClosedForReceive:
			return nil
		default:
			return errors.New(failed.String())
		}
	}
}

// mostPieces bounds those that are written at a time.
const mostPieces = 32

// arrived is what a socket has received and not given out yet. Its reader gets
// exactly so much.
type arrived struct{ fd, count int }

// Len implements [tcpip.Payloader].
func (a *arrived) Len() int { return a.count }

func (a *arrived) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, err := unix.Read(a.fd, b)
	if n == 0 && err == nil {
		err = io.ErrUnexpectedEOF
	}
	return max(n, 0), err
}

// look finds out what a socket has received: io.EOF when nothing comes any
// more, unix.EAGAIN when nothing is there.
func look(fd int) (int, error) {
	count, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
	if count > 0 || err != nil {
		return count, err
	}
	var one [1]byte
	n, _, err := unix.Recvfrom(fd, one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	if err == nil && n == 0 {
		err = io.EOF
	}
	return max(n, 0), err
}

// fill has the stack read from the host's socket, until that has ended.
func (p *pair) fill() error {
	entry, writable := waiter.NewChannelEntry(waiter.WritableEvents | waiter.EventHUp | waiter.EventErr)
	p.inner.queue.EventRegister(&entry)
	defer p.inner.queue.EventUnregister(&entry)
	raw, err := p.outer.SyscallConn()
	if err != nil {
		return err
	}
	for {
		var seen error
		var failed tcpip.Error
		err := raw.Read(func(fd uintptr) bool {
			a := arrived{fd: int(fd)}
			if a.count, seen = look(a.fd); seen != nil {
				return seen != unix.EAGAIN
			}
			var n int64
			n, failed = p.inner.endpoint.Write(&a, tcpip.WriteOptions{})
			p.open.received.Add(n)
			return true
		})
		switch {
		case err != nil:
			return err
		case seen != nil && seen != unix.EINTR:
			return seen
		}
		switch failed.(type) {
		case nil:
		case *tcpip.ErrWouldBlock:
			<-writable
		default:
			return errors.New(failed.String())
		}
	}
}

// countedWriter counts what goes out.
type countedWriter struct {
	io.Writer
	open *open
}

func (w *countedWriter) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	w.open.sent.Add(int64(n))
	return n, err
}

// received counts what comes in.
type received struct {
	io.Writer
	open *open
}

func (w *received) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	w.open.received.Add(int64(n))
	return n, err
}
