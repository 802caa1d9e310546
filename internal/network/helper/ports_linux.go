package helper

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
)

// Published is a port of the host's loopback that leads to a port inside.
type Published struct{ Outside, Inside uint16 }

// Ports are the ports that are carried between a sandbox and the host.
type Ports struct {
	out       []uint16 // of the host's 127.0.0.1, reached at the sandbox's own
	listeners []*os.File
	inside    []uint16 // for each listener
}

// Listen listens on ports of the host's loopback, by IPv4 and IPv6. It returns an error if another program uses one of
// them.
func Listen(in []Published, out []uint16) (Ports, error) {
	p := Ports{out: out}
	for _, port := range in {
		for _, at := range []struct{ network, host string }{{"tcp4", "127.0.0.1"}, {"tcp6", "::1"}} {
			l, err := net.Listen(at.network, net.JoinHostPort(at.host, strconv.Itoa(int(port.Outside))))
			if err != nil && at.network == "tcp6" && !errors.Is(err, syscall.EADDRINUSE) {
				continue // there is no IPv6 here
			}
			if err != nil {
				p.Close()
				return Ports{}, explain(port, at.host, err)
			}
			file, err := l.(*net.TCPListener).File()
			l.Close()
			if err != nil {
				p.Close()
				return Ports{}, &diag.Error{Op: carry(port), Err: err}
			}
			_ = unix.SetsockoptString(int(file.Fd()), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno") // as stage does
			p.listeners, p.inside = append(p.listeners, file), append(p.inside, port.Inside)
		}
	}
	return p, nil
}

func carry(port Published) string { return fmt.Sprintf("carry port %d into the sandbox", port.Outside) }

func explain(port Published, host string, err error) error {
	at := net.JoinHostPort(host, strconv.Itoa(int(port.Outside)))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return diag.Errorf(carry(port),
			fmt.Sprintf("end the other program, or use another port: --publish PORT:%d", port.Inside),
			"something on this host listens on %s already", at)
	case errors.Is(err, syscall.EACCES):
		return diag.Errorf(carry(port),
			fmt.Sprintf("use a port above 1023: --publish 8%03d:%d", port.Outside%1000, port.Inside),
			"only root may listen on port %d", port.Outside)
	}
	return &diag.Error{Op: carry(port), Err: err}
}

// Close stops listening on the ports.
func (p Ports) Close() {
	for _, l := range p.listeners {
		l.Close()
	}
}
