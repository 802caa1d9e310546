package policy

import (
	"net/netip"
	"slices"
)

// wellKnown is the NAT64 prefix that is the same everywhere (RFC 6052, 2.1).
var wellKnown = netip.MustParsePrefix("64:ff9b::/96")

// behindNAT64 returns the IPv4 address to which a NAT64 translates an address, with
// words that say so, or the address itself.
func (h Host) behindNAT64(a netip.Addr) (netip.Addr, string) {
	if !a.Is6() {
		return a, ""
	}
	for _, p := range append([]netip.Prefix{wellKnown}, h.NAT64...) {
		if v4, ok := Embedded(p, a); ok {
			return v4, " (" + v4.String() + " by NAT64)"
		}
	}
	return a, ""
}

// MayTranslate reports whether an address may be an IPv4 address behind a NAT64 prefix that
// is not known yet. [Judge] treats it as the IPv6 address that it looks like.
func (h Host) MayTranslate(a netip.Addr) bool {
	return h.Unsure && a.Unmap().Is6() &&
		!slices.ContainsFunc(h.Networks, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Embedded returns the IPv4 address in an address behind a NAT64 prefix (RFC 6052,
// 2.2). It returns false for an address outside the prefix, and for a length that no NAT64
// prefix has.
func Embedded(p netip.Prefix, a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() || !p.Contains(a) {
		return netip.Addr{}, false
	}
	at, ok := map[int][4]int{
		32: {4, 5, 6, 7}, 40: {5, 6, 7, 9}, 48: {6, 7, 9, 10}, 56: {7, 9, 10, 11}, 64: {9, 10, 11, 12},
		96: {12, 13, 14, 15},
	}[p.Bits()]
	if !ok {
		return netip.Addr{}, false
	}
	b := a.As16()
	return netip.AddrFrom4([4]byte{b[at[0]], b[at[1]], b[at[2]], b[at[3]]}), true
}

// Discovered returns the NAT64 prefixes that the answers for ipv4only.arpa reveal: those
// followed by one of that name's two IPv4 addresses (RFC 7050, 3).
func Discovered(answers []netip.Addr) []netip.Prefix {
	var list []netip.Prefix
	for _, a := range answers {
		for _, bits := range []int{32, 40, 48, 56, 64, 96} {
			p := netip.PrefixFrom(a, bits).Masked()
			v4, ok := Embedded(p, a)
			if ok && (v4 == netip.AddrFrom4([4]byte{192, 0, 0, 170}) ||
				v4 == netip.AddrFrom4([4]byte{192, 0, 0, 171})) {
				list = append(list, p)
				break
			}
		}
	}
	return list
}
