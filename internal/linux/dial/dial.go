// Package dial connects to a host by all of its addresses, as RFC 8305 says: one that is dead delays no other.
package dial

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// attemptDelay is the time after which the next address of a host is tried beside those that have not answered
// (RFC 8305, 5).
const attemptDelay = 250 * time.Millisecond

// Dial connects to HOST:PORT with a socket of d, within d.Timeout if there is one. It calls judge for each address
// before that address is dialled, and returns the address that answered.
func Dial(
	ctx context.Context, d *net.Dialer, network, to string, judge func(netip.AddrPort) error,
) (net.Conn, netip.AddrPort, error) {
	if d.Timeout > 0 {
		within, cancel := context.WithTimeout(ctx, d.Timeout)
		defer cancel()
		ctx = within
	}
	resolver := d.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	all, err := addresses(ctx, resolver, to)
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	return race(ctx, all, attemptDelay, func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
		if err := judge(addr); err != nil {
			return nil, err
		}
		return d.DialContext(ctx, network, addr.String())
	})
}

// Any judges every address good.
func Any(netip.AddrPort) error { return nil }

// addresses returns the addresses that a HOST:PORT leads to, in the order in which they are tried: the families take
// turns (RFC 8305, 4).
func addresses(ctx context.Context, r *net.Resolver, to string) ([]netip.AddrPort, error) {
	if addr, err := netip.ParseAddrPort(to); err == nil {
		return []netip.AddrPort{addr}, nil
	}
	host, digits, err := net.SplitHostPort(to)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return nil, err
	}
	list, err := r.LookupNetIP(ctx, "ip", host)
	return inTurns(list, uint16(port)), err
}

// inTurns returns addresses so that families take turns, first that of the one that the resolver prefers.
func inTurns(list []netip.Addr, port uint16) (all []netip.AddrPort) {
	var families [2][]netip.AddrPort
	for _, addr := range list {
		family := 0
		if addr.Unmap().Is4() != list[0].Unmap().Is4() {
			family = 1
		}
		families[family] = append(families[family], netip.AddrPortFrom(addr.Unmap(), port))
	}
	for i := range list {
		for _, family := range families {
			if i < len(family) {
				all = append(all, family[i])
			}
		}
	}
	return all
}

// errNowhere is the error of [race] without an address; a resolver gives one or an error.
var errNowhere = errors.New("bug: no address")

// race calls dial for each address, for the next when one has failed or delay after the last, and returns the first
// connection. The others are closed. If all fail it returns the first error.
func race(
	ctx context.Context, all []netip.AddrPort, delay time.Duration,
	dial func(context.Context, netip.AddrPort) (net.Conn, error),
) (net.Conn, netip.AddrPort, error) {
	type result struct {
		conn net.Conn
		addr netip.AddrPort
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan result, len(all))
	next := time.NewTimer(0)
	defer next.Stop()
	var first error
	if len(all) == 0 {
		first = errNowhere
	}
	for begun, ended := 0, 0; ended < len(all); {
		select {
		case <-next.C:
			if begun < len(all) {
				addr := all[begun]
				begun++
				go func() {
					conn, err := dial(ctx, addr)
					results <- result{conn, addr, err}
				}()
				next.Reset(delay)
			}
		case r := <-results:
			ended++
			if r.err == nil {
				go func() { // those that answer in spite of the end of ctx
					for ; ended < begun; ended++ {
						if late := <-results; late.err == nil {
							late.conn.Close()
						}
					}
				}()
				return r.conn, r.addr, nil
			}
			if first == nil {
				first = r.err
			}
			next.Reset(0)
		}
	}
	return nil, netip.AddrPort{}, first
}
