package inside_test

import (
	"net"
	"syscall"
	"testing"
	"time"

	"claudebox/internal/nix/inside"
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
