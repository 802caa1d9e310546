package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"claudebox/internal/linux/dial"
	"claudebox/internal/network/flow"
	"claudebox/internal/network/upstream"
)

// dialTime bounds a dial: Linux gives up after about the same time.
const dialTime = 130 * time.Second

// errRefused means that the policy forbids the address. The journal has been told.
var errRefused = errors.New("refused by the policy")

var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 30 * time.Second, Count: 4}

// dialFunc connects with a socket of the host. It calls judge for each address before it dials that address,
// and returns the address that answered.
type dialFunc func(
	ctx context.Context, network, to string, judge func(netip.AddrPort) error,
) (net.Conn, netip.AddrPort, error)

// dialHost is the [dialFunc] that every connection uses.
func (s *Stack) dialHost(
	ctx context.Context, network, to string, judge func(netip.AddrPort) error,
) (net.Conn, netip.AddrPort, error) {
	d := net.Dialer{Resolver: s.Resolver, KeepAliveConfig: keepAlive}
	return dial.Dial(ctx, &d, network, to, judge)
}

// dial connects to the host of a flow, by its name if it has one. It returns the flow with the address that
// answered.
func (s *Stack) dial(ctx context.Context, f flow.Flow) (net.Conn, flow.Flow, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	to := f.To.String()
	switch {
	case f.Name != "" && s.Via.Address != "":
		conn, err := s.dialVia(ctx, f)
		return conn, f, err
	case f.Name != "": // the dot at the end keeps the resolver from adding a search domain
		to = net.JoinHostPort(f.Name+".", strconv.Itoa(int(f.To.Port())))
	}
	var refused atomic.Bool // IPv4 and IPv6 are dialled at the same time
	conn, answered, err := s.dialOut(ctx, string(f.Proto), to, func(addr netip.AddrPort) error {
		err := s.admit(ctx, flow.Flow{Proto: f.Proto, To: addr, Name: f.Name})
		if errors.Is(err, errRefused) {
			refused.Store(true)
		}
		return err
	})
	switch {
	case err == nil:
	case refused.Load():
		return nil, f, errRefused
	default:
		s.noteFailure(ctx, f, err)
		return nil, f, err
	}
	f.To = answered
	return conn, f, nil
}

// dialVia connects to the named host of a flow through the user's proxy. The name must have been judged.
func (s *Stack) dialVia(ctx context.Context, f flow.Flow) (net.Conn, error) {
	conn, _, err := s.dialOut(ctx, "tcp", s.Via.Address, func(netip.AddrPort) error { return nil })
	if err != nil {
		if !errors.Is(ctx.Err(), context.Canceled) {
			s.Journal.Refused(f, "the proxy cannot be reached: "+cause(err)) // the user's own setting is wrong
		}
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
	default:
		s.noteFailure(ctx, f, fmt.Errorf("by the proxy: %w", err))
	}
	conn.Close()
	return nil, err
}

// noteFailure tells the journal why a dial failed, unless the sandbox has given it up.
func (s *Stack) noteFailure(ctx context.Context, f flow.Flow, err error) {
	if !errors.Is(ctx.Err(), context.Canceled) {
		s.Journal.Failed(f, cause(err))
	}
}

// cause returns why a dial failed, without the addresses that a net error begins with.
func cause(err error) string {
	var lookup *net.DNSError
	var call *net.OpError
	switch {
	case errors.As(err, &lookup):
		return "looking its name up: " + lookup.Err
	case errors.As(err, &call):
		return call.Err.Error()
	}
	return err.Error()
}
