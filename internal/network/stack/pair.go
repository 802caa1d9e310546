package stack

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/waiter"

	"claudebox/internal/network/gate"
)

// pair is a connection with the sandbox (inner) and the connection outside to which it leads (outer).
// Data is copied between the stack's memory and the kernel's, without a buffer for each
// connection. The end of one connection's data ends the data of the other one; a reset
// of one resets the other.
type pair struct {
	inner *inner
	outer *net.TCPConn
	open  *openFlow
	once  sync.Once
}

// newPair makes a pair that has no inner connection yet.
func (s *Stack) newPair(outer *net.TCPConn, open *openFlow) *pair {
	return &pair{outer: outer, open: open}
}

// lingerTime is how long the rest of the data may take to go out after the sandbox has reset the connection.
const lingerTime = 5 * time.Second

// breakOff resets both connections.
func (p *pair) breakOff() {
	p.once.Do(func() {
		reset(p.outer)
		p.inner.abort()
	})
}

// run copies in both directions until both have ended, and closes the connections. With judged, a
// [gate.Gate] inspects what the client sends; refused is why the gate refused it.
func (p *pair) run(ctx context.Context, judged bool) (refused error) {
	vanished := waiter.NewFunctionEntry(waiter.EventHUp|waiter.EventErr, func(waiter.EventMask) {
		go func() {
			if p.inner.failed() { // data that came before the reset still goes out
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

// up copies from the sandbox to the host outside. It returns an error only if the gate refused something.
func (p *pair) up(ctx context.Context, g *gate.Gate) error {
	if g != nil {
		err := g.Client(ctx, p.inner.TCPConn, countedWriter{p.outer, &p.open.sent})
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
	if p.copyUp() != nil {
		p.breakOff()
		return nil
	}
	_ = p.outer.CloseWrite()
	return nil
}

// down copies from the host outside to the sandbox.
func (p *pair) down(g *gate.Gate) {
	err := error(nil)
	if g != nil {
		err = g.Server(p.outer, countedWriter{p.inner.TCPConn, &p.open.received})
	}
	if err == nil {
		err = p.copyDown()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		p.breakOff()
		return
	}
	p.inner.endpoint.Shutdown(tcpip.ShutdownWrite)
}

// errEnough is what a writer returns to the stack when it wants no more data at present.
var errEnough = errors.New("enough has been read")

// gatherWriter writes a connection's data to a socket by one call. The stack passes it one piece after the
// other; the pieces are valid only while the stack reads, so all are written with the last one.
type gatherWriter struct {
	fd      int
	expect  int // bytes that the stack has, at least
	pieces  [][]byte
	count   int // bytes in pieces
	written int // bytes that the socket has accepted
	err     error
}

// mostGathered bounds the bytes of one call: the stack does nothing else for the connection meanwhile.
const mostGathered = 256 << 10

func (t *gatherWriter) Write(b []byte) (int, error) {
	t.pieces, t.count = append(t.pieces, b), t.count+len(b)
	if t.count < min(t.expect, mostGathered) && len(t.pieces) < cap(t.pieces) {
		return len(b), nil
	}
	for {
		if t.written, t.err = unix.Writev(t.fd, t.pieces); t.err != unix.EINTR {
			return len(b), errEnough
		}
	}
}

// discarder discards as many bytes as its value says, and accepts no more.
type discarder int

func (s *discarder) Write(b []byte) (int, error) {
	n := min(len(b), int(*s))
	*s -= discarder(n)
	if n < len(b) {
		return n, errEnough
	}
	return n, nil
}

// copyUp copies from the stack to the host's socket until the sandbox has ended its data.
func (p *pair) copyUp() error {
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
		t := gatherWriter{pieces: pieces}
		err := raw.Write(func(fd uintptr) bool {
			t = gatherWriter{fd: int(fd), pieces: pieces}
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
			rest := discarder(t.written)
			p.inner.endpoint.Read(&rest, tcpip.ReadOptions{})
			p.open.sent.Add(int64(t.written))
		case *tcpip.ErrWouldBlock:
			<-readable
		case *tcpip.ErrClosedForReceive:
			return nil
		default:
			return errors.New(failed.String())
		}
	}
}

// mostPieces bounds the pieces of one call of a [gatherWriter].
const mostPieces = 32

// unread is the data that a socket has received and nobody has read yet, as a [tcpip.Payloader].
type unread struct{ fd, count int }

// Len implements [tcpip.Payloader].
func (a *unread) Len() int { return a.count }

func (a *unread) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, err := unix.Read(a.fd, b)
	if n == 0 && err == nil {
		err = io.ErrUnexpectedEOF
	}
	return max(n, 0), err
}

// countUnread returns how many bytes of a socket are [unread]. Its error is io.EOF at the end of
// the data, and unix.EAGAIN if there is none at present.
func countUnread(fd int) (int, error) {
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

// copyDown copies from the host's socket to the stack until the host outside has ended its data.
func (p *pair) copyDown() error {
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
			a := unread{fd: int(fd)}
			if a.count, seen = countUnread(a.fd); seen != nil {
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

// countedWriter adds the bytes that it writes to a counter.
type countedWriter struct {
	io.Writer
	count *atomic.Int64
}

func (w countedWriter) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	w.count.Add(int64(n))
	return n, err
}
