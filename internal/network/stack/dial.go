package stack

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"claudebox/internal/network/flow"
	"claudebox/internal/network/upstream"
)

// dialTime bounds a dial, as Linux does.
const dialTime = 130 * time.Second

// errRefused means that the policy forbids the address, which has been noted.
var errRefused = errors.New("refused by the policy")

var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 30 * time.Second, Count: 4}

// A dialFunc connects by the host's sockets. It has each address judged before
// it is dialled, and tells the one that answered.
type dialFunc func(
	ctx context.Context, network, to string, judge func(netip.AddrPort) error,
) (net.Conn, netip.AddrPort, error)

// dialHost is the only way out.
func (s *Stack) dialHost(
	ctx context.Context, network, to string, judge func(netip.AddrPort) error,
) (net.Conn, netip.AddrPort, error) {
	d := net.Dialer{
		Resolver: s.Resolver, KeepAliveConfig: keepAlive,
		ControlContext: func(_ context.Context, _, to string, _ syscall.RawConn) error {
			addr, err := netip.ParseAddrPort(to)
			if err != nil {
				return err
			}
			return judge(addr)
		},
	}
	conn, err := d.DialContext(ctx, network, to)
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	addr, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		conn.Close()
		return nil, netip.AddrPort{}, err
	}
	return conn, addr, nil
}

// dial connects to where a flow goes, by its name if it has one. The flow comes
// back with the address that answered.
func (s *Stack) dial(ctx context.Context, f flow.Flow) (net.Conn, flow.Flow, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	to := f.To.String()
	switch {
	case f.Name != "" && s.Via.Address != "":
		conn, err := s.dialVia(ctx, f)
		return conn, f, err
	case f.Name != "": // the dot keeps the machine's search domains away
		to = net.JoinHostPort(f.Name+".", strconv.Itoa(int(f.To.Port())))
	}
	var refused atomic.Bool // both families are dialled side by side
	conn, answered, err := s.dialOut(ctx, string(f.Proto), to, func(addr netip.AddrPort) error {
		err := s.admit(ctx, flow.Flow{Proto: f.Proto, To: addr, Name: f.Name})
		if errors.Is(err, errRefused) {
			refused.Store(true)
		}
		return err
	})
	if err != nil {
		if refused.Load() {
			err = errRefused
		}
		return nil, f, err
	}
	f.To = answered
	return conn, f, nil
}

// dialVia has the user's proxy connect to a name that was judged.
func (s *Stack) dialVia(ctx context.Context, f flow.Flow) (net.Conn, error) {
	conn, _, err := s.dialOut(ctx, "tcp", s.Via.Address, func(netip.AddrPort) error { return nil })
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	var no *upstream.Refused
	err = s.Via.Connect(conn, f.Name, f.To.Port())
	switch {
	case errors.As(err, &no):
		s.Journal.Refused(f, no.Error())
		err = errRefused
	case err == nil:
		return conn, conn.SetDeadline(time.Time{})
	}
	conn.Close()
	return nil, err
}
