package main

import (
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// outlet is how the sandbox is connected.
type outlet struct {
	index    int // of the interface with the default route; lo's where there is none
	name     string
	gateway  netip.Addr
	gateway6 netip.Addr
}

func findOutlet() (outlet, error) {
	out := outlet{index: 1, name: "lo"}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return out, err
	}
	for _, r := range routes {
		if r.Gw == nil || (r.Dst != nil && !r.Dst.IP.IsUnspecified()) {
			continue
		}
		gateway, _ := netip.AddrFromSlice(r.Gw)
		if gateway = gateway.Unmap(); gateway.Is4() {
			out.gateway = gateway
		} else {
			out.gateway6 = gateway
		}
		out.index = r.LinkIndex
	}
	link, err := net.InterfaceByIndex(out.index)
	if err != nil {
		return out, err
	}
	out.name = link.Name
	return out, nil
}
