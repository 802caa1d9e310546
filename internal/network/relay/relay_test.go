package relay

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
)

// pair is a TCP connection over the loopback, from both sides.
func pair(t testing.TB) (here, there *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a.(*net.TCPConn), b.(*net.TCPConn)
}

// relayed is a connection with a relay in its middle, and when that has ended.
func relayed(t testing.TB) (left, right *net.TCPConn, ended chan struct{}) {
	t.Helper()
	left, a := pair(t)
	b, right := pair(t)
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		Both(a, b)
	}()
	return left, right, ended
}

func TestWhatIsSentArrivesBothWays(t *testing.T) {
	left, right, ended := relayed(t)
	sent := make([]byte, 3<<20+7)
	rand.Read(sent)
	var all sync.WaitGroup
	for _, way := range []struct{ from, to *net.TCPConn }{{left, right}, {right, left}} {
		all.Go(func() {
			way.from.Write(sent)
			way.from.CloseWrite()
		})
		all.Go(func() {
			if got, err := io.ReadAll(way.to); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("%d of %d bytes came, %v", len(got), len(sent), err)
			}
		})
	}
	all.Wait()
	<-ended
}

func TestTheEndOfOneWayLeavesTheOtherOpen(t *testing.T) {
	left, right, ended := relayed(t)
	left.Write([]byte("question"))
	left.CloseWrite()
	if got, err := io.ReadAll(right); string(got) != "question" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	right.Write([]byte("answer"))
	right.Close()
	if got, err := io.ReadAll(left); string(got) != "answer" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	<-ended
}

func TestABrokenConnectionEndsBoth(t *testing.T) {
	left, right, ended := relayed(t)
	right.SetLinger(0)
	right.Close() // with a reset
	<-ended
	if _, err := left.Read(make([]byte, 1)); err == nil {
		t.Error("the left side is still open")
	}
}

// A server that has answered and not read all resets the connection when it
// closes it. The answer was there before.
func TestWhatCameBeforeAResetArrives(t *testing.T) {
	for range 300 {
		left, right, ended := relayed(t)
		const first = 1 << 20 // opens the window: what is written from then on is there
		var written sync.WaitGroup
		written.Go(func() { left.Write(make([]byte, first)) })
		if _, err := io.CopyN(io.Discard, right, first); err != nil {
			t.Fatal(err)
		}
		written.Wait()
		last := make([]byte, busyPiece)
		left.Write(last)
		left.Write(last[:1000])
		left.SetLinger(0)
		left.Close()
		if n, _ := io.Copy(io.Discard, right); n != busyPiece+1000 {
			t.Fatalf("%d of %d bytes came", n, busyPiece+1000)
		}
		<-ended
	}
}

func TestAReaderThatLagsIsWaitedFor(t *testing.T) {
	left, right, ended := relayed(t)
	sent := make([]byte, 32<<20) // more than all buffers on the way hold
	go func() {
		left.Write(sent)
		left.Close()
	}()
	piece := make([]byte, 1000)
	if _, err := io.ReadFull(right, piece); err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, right)
	if err != nil || int(n)+len(piece) != len(sent) {
		t.Errorf("%d bytes, %v", n, err)
	}
	right.Close()
	<-ended
}

// A pipe with something left in it would show one connection's bytes to
// another.
func TestNoPipeIsUsedAgainWithBytesInIt(t *testing.T) {
	for range 8 {
		left, right, ended := relayed(t)
		right.SetLinger(0)
		go left.Write(bytes.Repeat([]byte("secret"), 1<<20))
		io.ReadFull(right, make([]byte, 10))
		right.Close()
		left.Close()
		<-ended
	}
	for range mostSpare {
		p, err := take()
		if err != nil {
			t.Fatal(err)
		}
		defer p.close()
		if n, err := syscall.Read(p.out, make([]byte, 10)); !errors.Is(err, syscall.EAGAIN) {
			t.Fatalf("a pipe holds %d bytes, %v", n, err)
		}
	}
}

func BenchmarkRelay(b *testing.B) {
	piece := make([]byte, 256<<10)
	for name, connect := range map[string]func(testing.TB) (*net.TCPConn, *net.TCPConn){
		"relayed": func(t testing.TB) (*net.TCPConn, *net.TCPConn) { l, r, _ := relayed(t); return l, r },
		"direct":  func(t testing.TB) (*net.TCPConn, *net.TCPConn) { return pair(t) },
	} {
		b.Run(name, func(b *testing.B) {
			left, right := connect(b)
			b.SetBytes(int64(len(piece)))
			go func() {
				for range b.N {
					left.Write(piece)
				}
				left.CloseWrite()
			}()
			io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{right}, piece)
			right.Close()
		})
	}
}
