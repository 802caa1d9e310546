package inside_test

import (
	"bytes"
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"claudebox/internal/nix/inside"
	"claudebox/internal/nix/nixdaemon"
)

// failing is a listener that has no descriptor free at first, has one client then, and is closed.
type failing struct {
	net.Listener
	results []func() (net.Conn, error)
}

func (l *failing) Accept() (net.Conn, error) {
	next := l.results[0]
	l.results = l.results[1:]
	return next()
}

// The filter hung up without a word when a client had to wait for others, or for the daemon, longer than it may take to
// say what it wants: Nix inside said "Nix daemon disconnected unexpectedly".
func TestWhatAClientWaitsForIsNotItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		l := &failing{results: []func() (net.Conn, error){
			func() (net.Conn, error) { return theirs, nil },
			func() (net.Conn, error) { return nil, net.ErrClosed },
		}}
		_ = inside.Serve(l, &inside.Host{Dial: func() (*nixdaemon.Client, error) {
			time.Sleep(50 * time.Second) // a garbage collection on the host
			return nil, errors.New("it does not answer")
		}})
		go func() {
			_, _ = ours.Write(greeting(37))
			request := []any{31, 300}
			for range 300 {
				request = append(request, pathA)
			}
			_, _ = ours.Write(message(append(request, 0)...))
		}()
		var said []byte
		for !bytes.Contains(said, []byte("it does not answer")) {
			part := make([]byte, 512)
			n, err := ours.Read(part)
			if said = append(said, part[:n]...); err != nil {
				t.Fatalf("after %q: %v", said, err)
			}
		}
	})
}

func TestAFilterWithoutAFreeDescriptorServesLater(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	l := &failing{results: []func() (net.Conn, error){
		func() (net.Conn, error) { return nil, syscall.EMFILE },
		func() (net.Conn, error) { return theirs, nil },
		func() (net.Conn, error) { return nil, net.ErrClosed },
	}}
	_ = inside.Serve(l, &inside.Host{})
	_ = ours.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := ours.Write([]byte("hello, I am no client of Nix")); err != nil {
		t.Error("nobody reads: ", err)
	}
}
