// Package hostnet reads which networks this machine is connected to, and watches for changes.
package hostnet

import (
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/network/policy"
)

// Read asks the kernel for all addresses, and for the routes in all tables.
func Read() (policy.Host, error) {
	const op = "read this machine's addresses and routes"
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return policy.Host{}, &diag.Error{Op: op, Err: err}
	}
	defer h.Close()
	list, err := h.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return policy.Host{}, &diag.Error{Op: op, Err: err}
	}
	var addresses []policy.Address
	for _, a := range list {
		if converted, ok := address(a); ok {
			addresses = append(addresses, converted)
		}
	}
	var routes []policy.Route
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		// A filter by a table that is none asks for those of all.
		list, err := h.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_UNSPEC},
			netlink.RT_FILTER_TABLE)
		if err != nil {
			return policy.Host{}, &diag.Error{Op: op, Err: err}
		}
		for _, r := range list {
			routes = append(routes, nextHops(r)...)
		}
	}
	return policy.Connected(addresses, routes), nil
}

func address(a netlink.Addr) (policy.Address, bool) {
	network, ok := prefix(a.IPNet)
	if !ok {
		return policy.Address{}, false
	}
	converted := policy.Address{IP: network.Addr(), Network: network.Masked()}
	if other, ok := prefix(a.Peer); ok && other.Addr() != converted.IP {
		converted.Peer = other.Addr()
	}
	return converted, true
}

// nextHops returns a Route for each next hop of a route.
func nextHops(r netlink.Route) []policy.Route {
	route := policy.Route{Device: r.LinkIndex, Gateway: gateway(r.Gw, r.Via)}
	switch r.Type {
	case unix.RTN_UNICAST:
	case unix.RTN_LOCAL, unix.RTN_BROADCAST, unix.RTN_ANYCAST, unix.RTN_MULTICAST:
		route.Local = true
	default: // it leads nowhere
		return nil
	}
	to, ok := prefix(r.Dst)
	if !ok {
		to = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if r.Family == netlink.FAMILY_V6 {
			to = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
	}
	route.To = to
	if len(r.MultiPath) == 0 {
		return []policy.Route{route}
	}
	var list []policy.Route
	for _, hop := range r.MultiPath {
		one := route
		one.Device, one.Gateway = hop.LinkIndex, gateway(hop.Gw, hop.Via)
		list = append(list, one)
	}
	return list
}

// gateway is the next router's address, which may be of the other family.
func gateway(gw net.IP, via netlink.Destination) netip.Addr {
	if v, ok := via.(*netlink.Via); ok && v != nil {
		gw = v.Addr
	}
	addr, _ := netip.AddrFromSlice(gw)
	return addr.Unmap()
}

func prefix(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	addr, ok := netip.AddrFromSlice(n.IP)
	bits, size := n.Mask.Size()
	if !ok || size == 0 {
		return netip.Prefix{}, false
	}
	if size == 32 {
		addr = addr.Unmap()
	}
	return netip.PrefixFrom(addr, bits), true
}

// Watch calls changed at once and then whenever addresses or routes have changed. Several changes together cause one
// call. It returns the error because of which changes are no longer noticed.
func Watch(changed func()) error {
	news, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR,
		unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE)
	if err != nil {
		return err
	}
	defer news.Close()
	for {
		changed()
		_ = news.SetReceiveTimeout(&unix.Timeval{}) // the next change may come at any time
		for n := 0; n < mostTogether && err == nil; n++ {
			_, _, err = news.Receive()
			_ = news.SetReceiveTimeout(&together)
		}
		if err != nil && !errors.Is(err, unix.EAGAIN) {
			return err
		}
		err = nil
	}
}

// together is how long after a change another one may come that belongs to it; there are at most mostTogether.
var together = unix.NsecToTimeval(int64(time.Millisecond))

const mostTogether = 64
