package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"claudebox/internal/network/hostpattern"
)

// target is where a client wants to.
type target struct {
	name string // canonical
	port int
}

func (t target) String() string { return t.name + ":" + strconv.Itoa(t.port) }

// The ports whose tunnels are looked into.
const (
	portHTTP  = 80
	portHTTPS = 443
)

// refusal is a no that the user hears of. What is as the client wrote it, or a
// target.
type refusal struct {
	what   string
	why    string // empty: it is not on the list
	status int    // of HTTP; [socksNoCommand] too
}

func (r *refusal) Error() string {
	if r.why == "" {
		return r.what + " is not a host that this sandbox may reach"
	}
	return r.what + ": " + r.why
}

func malformed(what, format string, args ...any) error {
	return &refusal{what: what, why: fmt.Sprintf(format, args...), status: 400}
}

// parseTarget reads HOST:PORT. Without fallback, a port has to be said.
func parseTarget(text string, fallback int) (target, error) {
	host, digits, ported := text, "", false
	if i := strings.LastIndexByte(text, ':'); i >= 0 && !strings.HasSuffix(text, "]") {
		host, digits, ported = text[:i], text[i+1:], true
	}
	port := fallback
	if ported || fallback == 0 {
		var err error
		if port, err = parsePort(digits); err != nil {
			return target{}, malformed(text, "%v", err)
		}
	}
	return makeTarget(text, host, port)
}

func makeTarget(text, host string, port int) (target, error) {
	name, err := hostpattern.Canonical(host)
	if err != nil {
		return target{}, &refusal{what: text, why: err.Error(), status: 403}
	}
	return target{name, port}, nil
}

var errPort = errors.New("not a port")

func parsePort(digits string) (int, error) {
	port, err := strconv.Atoi(digits)
	if err != nil || strconv.Itoa(port) != digits || port < 1 || port > 65535 {
		return 0, errPort
	}
	return port, nil
}

// addressTarget is how an address is refused that came as one.
func addressTarget(a netip.Addr, port int) error {
	return &refusal{what: net.JoinHostPort(a.String(), strconv.Itoa(port)), why: hostpattern.ErrAddress.Error(), status: 403}
}
