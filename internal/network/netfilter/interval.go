package netfilter

import (
	"net/netip"
	"slices"
)

// interval is a range of addresses of one family, both ends included.
type interval struct{ first, last netip.Addr }

// intervals are the prefixes of a family in order, overlapping ones made one,
// as the kernel's sets want them.
func intervals(prefixes []netip.Prefix, ipv4 bool) []interval {
	var all []interval
	for _, p := range prefixes {
		if p.Addr().Is4() == ipv4 {
			all = append(all, interval{p.Masked().Addr(), lastOf(p)})
		}
	}
	slices.SortFunc(all, func(a, b interval) int { return a.first.Compare(b.first) })
	var merged []interval
	for _, next := range all {
		end := len(merged) - 1
		if end < 0 || merged[end].last.Less(next.first) && merged[end].last.Next() != next.first {
			merged = append(merged, next)
			continue
		}
		if merged[end].last.Less(next.last) {
			merged[end].last = next.last
		}
	}
	return merged
}

// lastOf is the last address of a prefix.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(b)*8; bit++ {
		b[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(b)
	return last
}
