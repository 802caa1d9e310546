package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"claudebox/internal/network/forbidden"
	"claudebox/internal/network/hostnet"
)

// dialTime bounds resolving and connecting.
const dialTime = 30 * time.Second

// forbiddenError says that a name leads where the sandbox may not go.
type forbiddenError struct {
	address netip.Addr
	why     string
}

func (e *forbiddenError) Error() string { return fmt.Sprintf("its address %s is %s", e.address, e.why) }

// dialer connects to names.
type dialer struct {
	resolver *net.Resolver
	networks func() []netip.Prefix // of the host, at this moment
}

// dial resolves and connects. The check is made on each address that is about
// to be connected to: nothing is resolved a second time. The dot at the end
// keeps search domains of the host away from the name.
func (d dialer) dial(ctx context.Context, t target) (*net.TCPConn, error) {
	no := forbidden.With(d.networks()...)
	out := net.Dialer{
		Timeout: dialTime, Resolver: d.resolver,
		Control: func(_, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			if why := no.Refuses(to.Addr()); why != "" {
				return &forbiddenError{to.Addr(), why}
			}
			return nil
		},
	}
	conn, err := out.DialContext(ctx, "tcp", net.JoinHostPort(t.name+".", strconv.Itoa(t.port)))
	if err != nil {
		return nil, unreachable(t, err)
	}
	return conn.(*net.TCPConn), nil
}

// failure is a host that may be reached and cannot be. The user hears of it
// from the client.
type failure struct {
	target target
	err    error
}

func (f *failure) Error() string { return fmt.Sprintf("%s cannot be reached: %v", f.target, f.err) }

func unreachable(t target, err error) error {
	var private *forbiddenError
	if errors.As(err, &private) {
		return &refusal{what: t.String(), why: private.Error(), status: 403}
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return &failure{t, errors.New("look up: " + dns.Err)}
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return &failure{t, err}
}

// hostNetworks are this machine's addresses and networks: a neighbour in the
// LAN may have a public address. They are read at each connection, as machines
// roam and VPNs come up. When they cannot be, every address is one of them.
func hostNetworks() []netip.Prefix {
	host, err := hostnet.Read()
	if err != nil {
		return []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	}
	return host.Prefixes
}
