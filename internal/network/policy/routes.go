package policy

import (
	"cmp"
	"net/netip"
	"slices"
)

// Address is an address of this machine.
type Address struct {
	IP      netip.Addr
	Network netip.Prefix // the network that the machine is connected to by it
	Peer    netip.Addr   // the other end of a point-to-point link; zero: none
}

// Route is one way out of the machine, from any table. A route with several
// next hops counts as several Routes.
type Route struct {
	To      netip.Prefix
	Gateway netip.Addr // zero: the network is directly connected
	Device  int        // its index; 0: not known
	Local   bool       // it leads to the machine itself, or is for broadcast, anycast or multicast
}

// Connected is what a machine is connected to, from its addresses and routes:
// its own addresses and their networks, its gateways, and where the routes
// lead that are not those to the internet.
func Connected(addresses []Address, routes []Route) Host {
	var h Host
	for _, a := range addresses {
		h.Addresses = append(h.Addresses, a.IP)
		h.Networks = append(h.Networks, a.Network.Masked())
		if a.Peer.IsValid() {
			h.Networks = append(h.Networks, single(a.Peer))
		}
	}
	out := toInternet(routes)
	for _, r := range routes {
		if r.Gateway.IsValid() {
			h.Networks = append(h.Networks, single(r.Gateway))
		}
		if r.Local && r.To.IsSingleIP() {
			h.Addresses = append(h.Addresses, r.To.Addr())
		}
		if r.To.Bits() > 0 && (r.Local || !out[roadOf(r)]) {
			h.Networks = append(h.Networks, r.To.Masked())
		}
	}
	slices.SortFunc(h.Networks, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	h.Networks = slices.Compact(h.Networks)
	slices.SortFunc(h.Addresses, netip.Addr.Compare)
	h.Addresses = slices.Compact(h.Addresses)
	return h
}

func single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// road is the routes of one device for one family of addresses, those through gateways apart from the direct ones: of a
// LAN only the former lead to the internet, of a tunnel the latter.
type road struct {
	device int
	v4     bool
	direct bool
}

func roadOf(r Route) road { return road{r.Device, r.To.Addr().Is4(), !r.Gateway.IsValid()} }

// toInternet returns the roads to the internet, with true: those whose routes together cover more than half of it. VPNs
// split the default route into halves, or exclude the private networks from it, which results in dozens of routes.
func toInternet(routes []Route) map[road]bool {
	reach := map[road][]span{}
	for _, r := range routes {
		if s, ok := spanOf(r.To); ok && !r.Local {
			reach[roadOf(r)] = append(reach[roadOf(r)], s)
		}
	}
	out := map[road]bool{}
	for to, spans := range reach {
		whole := internet(to.v4)
		out[to] = size(without(whole, spans)) < size(whole)/2
	}
	return out
}

// span is a range of addresses, last included: of IPv4 addresses, or of the upper halves of IPv6
// addresses.
type span struct{ first, last uint64 }

// spanOf returns a prefix as a span; false for an IPv6 prefix longer than 64 bits, which is
// nothing compared to the internet.
func spanOf(p netip.Prefix) (span, bool) {
	p = p.Masked()
	if p.Addr().Is4() {
		b := p.Addr().As4()
		first := uint64(b[0])<<24 | uint64(b[1])<<16 | uint64(b[2])<<8 | uint64(b[3])
		return span{first, first + 1<<(32-p.Bits()) - 1}, true
	}
	if p.Bits() > 64 {
		return span{}, false
	}
	b := p.Addr().As16()
	var first uint64
	for _, x := range b[:8] {
		first = first<<8 | uint64(x)
	}
	return span{first, first | (1<<(64-p.Bits()) - 1)}, true
}

// internet returns the addresses that can be public: in IPv4 all but the special ones, in IPv6
// 2000::/3.
func internet(v4 bool) []span {
	if !v4 {
		global, _ := spanOf(netip.MustParsePrefix("2000::/3"))
		return []span{global}
	}
	var taken []span
	for _, p := range special() {
		if p.Addr().Is4() {
			s, _ := spanOf(p)
			taken = append(taken, s)
		}
	}
	return without([]span{{0, 1<<32 - 1}}, taken)
}

// size is how many addresses spans hold together, which must be less than all
// of IPv6.
func size(spans []span) uint64 {
	var n uint64
	for _, s := range joined(spans) {
		n += s.last - s.first + 1
	}
	return n
}

// joined are the same addresses in order, none twice.
func joined(spans []span) []span {
	sorted := slices.SortedFunc(slices.Values(spans), func(a, b span) int { return cmp.Compare(a.first, b.first) })
	var list []span
	for _, s := range sorted {
		if n := len(list); n > 0 && s.first <= list[n-1].last {
			list[n-1].last = max(list[n-1].last, s.last)
			continue
		}
		list = append(list, s)
	}
	return list
}

// without are the addresses of spans that are in none of the others.
func without(spans, others []span) []span {
	left := joined(spans)
	for _, o := range joined(others) {
		var next []span
		for _, s := range left {
			if o.last < s.first || s.last < o.first {
				next = append(next, s)
				continue
			}
			if s.first < o.first {
				next = append(next, span{s.first, o.first - 1})
			}
			if o.last < s.last {
				next = append(next, span{o.last + 1, s.last})
			}
		}
		left = next
	}
	return left
}
