package target

import (
	"net/netip"

	"claudebox/internal/network/policy"
)

// Sample is one address of a range that is out of bounds. It lies in none of the
// networks that the world's host is connected to, so that the range alone
// closes it.
func Sample(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	mark := func(index int, value byte) {
		if p.Bits() <= index*8 {
			b[index] |= value
		}
	}
	last := len(b) - 1
	mark(last, 77)
	mark(last-1, 99)
	if last > 7 {
		mark(7, 1) // beyond the /64 that a host has of fe80::/10
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// Samples has one of every range, named after it.
func Samples() []Target {
	var list []Target
	for _, r := range policy.Ranges {
		p := netip.MustParsePrefix(r.Prefix)
		list = append(list, Target{Name: p.String(), Addr: Sample(p), Side: Outside, Port: Port})
	}
	return list
}
