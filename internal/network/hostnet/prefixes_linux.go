package hostnet

import (
	"cmp"
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/network/netlink"
)

// Network is what this machine is connected to.
type Network struct {
	// Prefixes are its own addresses, those of its gateways, and every
	// destination that it has a route of its own for, in whatever table: the
	// LAN, where neighbours may have public addresses, containers, VPNs. They
	// are masked and sorted, each there once.
	Prefixes []netip.Prefix
	// IPv4 and IPv6 report whether there is a default route.
	IPv4, IPv6 bool
}

// Routes to more than this many addresses are taken for roads to the internet, as
// VPNs halve the default route (OpenVPN's def1: 0.0.0.0/1 and 128.0.0.0/1).
// No local network is so large: the largest is 10.0.0.0/8.
const (
	leastBits4 = 8
	leastBits6 = 16
)

// attempts bounds how often the tables are read again when they change
// meanwhile.
const attempts = 5

// Read asks the kernel for all addresses and all routes.
func Read() (Network, error) {
	const op = "read this machine's addresses and routes"
	s, err := netlink.Open(unix.NETLINK_ROUTE, 0)
	if err != nil {
		return Network{}, &diag.Error{Op: op, Err: err}
	}
	defer s.Close()
	for range attempts {
		n, failed := readBy(s)
		if err = failed; err == nil {
			return n, nil
		}
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return Network{}, &diag.Error{Op: op, Err: err}
}

func readBy(s *netlink.Socket) (Network, error) {
	addresses, err := s.Dump(netlink.New(unix.RTM_GETADDR, unix.NLM_F_DUMP, make([]byte, unix.SizeofIfAddrmsg)...))
	if err != nil {
		return Network{}, err
	}
	routes, err := s.Dump(netlink.New(unix.RTM_GETROUTE, unix.NLM_F_DUMP, make([]byte, unix.SizeofRtMsg)...))
	if err != nil {
		return Network{}, err
	}
	var n Network
	for _, a := range addresses {
		n.address(a)
	}
	for _, r := range routes {
		n.route(r)
	}
	slices.SortFunc(n.Prefixes, compare)
	n.Prefixes = slices.Compact(n.Prefixes)
	return n, nil
}

// address takes an RTM_NEWADDR: IFA_LOCAL is the machine's own, IFA_ADDRESS
// the same or, point to point, the other end's.
func (n *Network) address(a netlink.Answer) {
	if a.Type != unix.RTM_NEWADDR || len(a.Body) < unix.SizeofIfAddrmsg {
		return
	}
	bits := int(a.Body[1]) // ifa_prefixlen
	values := a.Attributes(unix.SizeofIfAddrmsg)
	for _, kind := range []uint16{unix.IFA_LOCAL, unix.IFA_ADDRESS} {
		if addr, ok := netip.AddrFromSlice(values[kind]); ok {
			n.add(netip.PrefixFrom(addr, addr.BitLen()))
			n.add(netip.PrefixFrom(addr, bits))
		}
	}
}

// route takes an RTM_NEWROUTE.
func (n *Network) route(r netlink.Answer) {
	if r.Type != unix.RTM_NEWROUTE || len(r.Body) < unix.SizeofRtMsg {
		return
	}
	family, bits, kind := r.Body[0], int(r.Body[1]), r.Body[7] // rtm_family, rtm_dst_len, rtm_type
	values := r.Attributes(unix.SizeofRtMsg)
	if gateway, ok := netip.AddrFromSlice(values[unix.RTA_GATEWAY]); ok {
		n.add(netip.PrefixFrom(gateway, gateway.BitLen()))
	}
	if bits == 0 && kind == unix.RTN_UNICAST && !isLoopback(values[unix.RTA_OIF]) {
		n.IPv4 = n.IPv4 || family == unix.AF_INET
		n.IPv6 = n.IPv6 || family == unix.AF_INET6
	}
	if addr, ok := netip.AddrFromSlice(values[unix.RTA_DST]); ok {
		n.add(netip.PrefixFrom(addr, bits))
	}
}

// isLoopback tells interface 1, which lo is in every namespace. IPv6 has a
// default route of its own there that leads nowhere.
func isLoopback(index []byte) bool {
	return len(index) == 4 && binary.NativeEndian.Uint32(index) == 1
}

// add adds a prefix. Where there is NAT64, each IPv4 address has an IPv6 one
// besides, by which its router would lead back here (RFC 6052).
func (n *Network) add(p netip.Prefix) {
	least := leastBits6
	if p.Addr().Is4() {
		least = leastBits4
	}
	if p.Bits() < least {
		return
	}
	n.Prefixes = append(n.Prefixes, p.Masked())
	if p.Addr().Is4() {
		n.Prefixes = append(n.Prefixes, translated(p.Masked()))
	}
}

func translated(p netip.Prefix) netip.Prefix {
	a := [16]byte{0, 0x64, 0xff, 0x9b} // 64:ff9b::/96
	copy(a[12:], p.Addr().AsSlice())
	return netip.PrefixFrom(netip.AddrFrom16(a), 96+p.Bits())
}

func compare(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}
