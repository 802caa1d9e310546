package accept

import (
	"net"
	"syscall"
	"testing"
)

// failing is a listener that has no descriptor free at first, has one client then, and is closed.
type failing struct {
	net.Listener
	results []error
}

func (l *failing) Accept() (net.Conn, error) {
	err := l.results[0]
	l.results = l.results[1:]
	return nil, err
}

func TestAServerWithoutAFreeDescriptorServesLater(t *testing.T) {
	served := make(chan struct{}, 1)
	_ = Each(&failing{results: []error{syscall.EMFILE, nil, net.ErrClosed}}, make(chan struct{}, 64),
		func(net.Conn) { served <- struct{}{} })
	<-served
}
