package world

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

// ListenOutside gives a test a server of its own, at a port of addresses
// beyond the host, until the test ends.
func (w *World) ListenOutside(t *testing.T, port string, addresses ...string) []net.Listener {
	t.Helper()
	return w.outside.serveAt(t, port, addresses)
}

// ListenOnHost is the same for addresses of the host.
func (w *World) ListenOnHost(t *testing.T, port string, addresses ...string) []net.Listener {
	t.Helper()
	return w.host.serveAt(t, port, addresses)
}

func (ns namespace) serveAt(t *testing.T, port string, addresses []string) []net.Listener {
	t.Helper()
	var all []net.Listener
	for _, a := range addresses {
		l, err := ns.listen("tcp", net.JoinHostPort(a, port))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		})
		all = append(all, l)
	}
	return all
}

// IsFreeOnHost reports whether nobody listens at a port of an address of the
// host.
func (w *World) IsFreeOnHost(t *testing.T, port, address string) bool {
	t.Helper()
	l, err := w.host.listen("tcp", net.JoinHostPort(address, port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	return l.Close() == nil
}
