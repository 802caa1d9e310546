package nixdaemon_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nix-community/go-nix/pkg/wire"

	"claudebox/checks/kit/must"
	"claudebox/internal/nix/nixdaemon"
)

// The messages of the protocol, spelt out here a second time: a test that
// used the client's own table could not find a slip in it.
const (
	msgNext  = 0x6f6c6d67
	msgLast  = 0x616c7473
	msgError = 0x63787470
	msgStart = 0x53545254
	msgStop  = 0x53544f50
	msgNews  = 0x52534c54
)

// words is the wire form of numbers and texts, by go-nix's encoder.
func words(values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		switch v := v.(type) {
		case int:
			_ = wire.WriteUint64(&b, uint64(v))
		case string:
			_ = wire.WriteString(&b, v)
		case []byte:
			b.Write(v)
		}
	}
	return b.Bytes()
}

// failure is an error message as daemons since 1.26 send it.
func failure(message string) []byte {
	return words(msgError, "Error", 0, "Error", message, 0, 0)
}

// peer is the daemon's end of one connection.
type peer struct {
	t *testing.T
	*net.UnixConn
	minor int
}

func (p peer) send(values ...any) { _, _ = p.Write(words(values...)) }

// expect reads the wire form of values and nothing else.
func (p peer) expect(values ...any) {
	want := words(values...)
	got := make([]byte, len(want))
	if n, err := io.ReadFull(p, got); err != nil || !bytes.Equal(got, want) {
		p.t.Errorf("the client sent\n%q (%v); want\n%q", got[:n], err, want)
	}
}

// expectNoMore wants nothing to wait behind what was read. A client writes
// what belongs together at once, so more would be there by now.
func (p peer) expectNoMore() {
	raw, err := p.SyscallConn()
	if err != nil {
		p.t.Error(err)
		return
	}
	_ = raw.Control(func(fd uintptr) {
		var b [1]byte
		if n, _, _ := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT); n > 0 {
			p.t.Error("the client sent more before it read an answer")
		}
	})
}

// greet shakes hands as a daemon of the peer's minor version.
func (p peer) greet() {
	p.expect(0x6e697863, 0x126)
	p.send(0x6478696f, 0x100|p.minor)
	if p.minor >= 38 {
		p.expect(0)
		p.send(0)
	}
	p.expect(0, 0)
	p.send("2.99.0")
	if p.minor >= 35 {
		p.send(2)
	}
	p.send(msgLast)
}

// untilGone waits for the client to hang up.
func (p peer) untilGone() {
	if _, err := io.Copy(io.Discard, p); err != nil && !errors.Is(err, net.ErrClosed) {
		return // reset: gone all the same
	}
}

// flood logs until the client hangs up.
func (p peer) flood() {
	message := words(msgNext, strings.Repeat("x", 4<<10))
	for {
		if _, err := p.Write(message); err != nil {
			return
		}
	}
}

// trickle sends a byte of a message that never ends, again and again.
func (p peer) trickle() {
	p.send(msgNext, 1<<20)
	for {
		if _, err := p.Write([]byte("x")); err != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// listen serves each connection by serve, and waits for it at the end.
func listen(t *testing.T, minor int, serve func(peer)) (socket string) {
	t.Helper()
	socket = must.Socket(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	must.Do(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := l.AcceptUnix()
			if err != nil {
				return
			}
			serve(peer{t, conn, minor})
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-served })
	return socket
}

// dial connects to a daemon that shakes hands and then does as serve says.
func dial(t *testing.T, minor int, opts nixdaemon.Options, serve func(peer)) *nixdaemon.Client {
	t.Helper()
	socket := listen(t, minor, func(p peer) { p.greet(); serve(p) })
	client, err := nixdaemon.Dial(t.Context(), socket, opts)
	must.Do(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}
