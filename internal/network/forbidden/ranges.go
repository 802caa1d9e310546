package forbidden

import (
	"fmt"
	"net/netip"
	"slices"
)

// Range is a range of addresses, what it is, and who says so.
type Range struct {
	Prefix string // in CIDR notation, masked
	What   string
	Source string
}

// Ranges are in the order of their addresses. No two of one family overlap,
// as nftables wants its intervals. It is text, so that a launch that needs
// none of it pays nothing.
//
// The documentation networks 198.51.100.0/24, 203.0.113.0/24 and 2001:db8::/32
// are not among them: nobody lives there, and tests need an internet.
var Ranges = []Range{
	{"0.0.0.0/8", "this network; Linux takes 0.0.0.0 for the loopback", "RFC 791, 3.2"},
	{"10.0.0.0/8", "private", "RFC 1918"},
	{"100.64.0.0/10", "carrier-grade NAT, Tailscale", "RFC 6598"},
	{"127.0.0.0/8", "loopback", "RFC 1122, 3.2.1.3"},
	{"168.63.129.16/32", "the host agent of Azure, a public address", "Microsoft, Azure: What is IP address 168.63.129.16?"},
	{"169.254.0.0/16", "link-local, with the metadata service of clouds", "RFC 3927"},
	{"172.16.0.0/12", "private", "RFC 1918"},
	{"192.0.0.0/24", "protocol assignments, with DS-Lite and the metadata service of Oracle", "RFC 6890"},
	{"192.0.2.0/24", "documentation; the network of tier inet inside", "RFC 5737"},
	{"192.88.99.0/24", "6to4 relays", "RFC 7526"},
	{"192.168.0.0/16", "private", "RFC 1918"},
	{"198.18.0.0/15", "benchmarks; made-up addresses of VPN programs", "RFC 2544"},
	{"224.0.0.0/4", "multicast", "RFC 5771"},
	{"240.0.0.0/4", "reserved, with broadcast", "RFC 1112, RFC 919"},

	{"::/96", "unspecified, loopback, IPv4-compatible", "RFC 4291, 2.5"},
	{"::ffff:0:0/96", "IPv4-mapped", "RFC 4291, 2.5.5.2"},
	{"::ffff:0:0:0/96", "IPv4-translated", "RFC 2765"},
	{"64:ff9b::/104", "0.0.0.0/8 by NAT64", "RFC 6052"},
	{"64:ff9b::a00:0/104", "10.0.0.0/8 by NAT64", "RFC 6052"},
	{"64:ff9b::6440:0/106", "100.64.0.0/10 by NAT64", "RFC 6052"},
	{"64:ff9b::7f00:0/104", "127.0.0.0/8 by NAT64", "RFC 6052"},
	{"64:ff9b::a83f:8110/128", "168.63.129.16 by NAT64", "RFC 6052"},
	{"64:ff9b::a9fe:0/112", "169.254.0.0/16 by NAT64", "RFC 6052"},
	{"64:ff9b::ac10:0/108", "172.16.0.0/12 by NAT64", "RFC 6052"},
	{"64:ff9b::c000:0/120", "192.0.0.0/24 by NAT64", "RFC 6052"},
	{"64:ff9b::c000:200/120", "192.0.2.0/24 by NAT64", "RFC 6052"},
	{"64:ff9b::c058:6300/120", "192.88.99.0/24 by NAT64", "RFC 6052"},
	{"64:ff9b::c0a8:0/112", "192.168.0.0/16 by NAT64", "RFC 6052"},
	{"64:ff9b::c612:0/111", "198.18.0.0/15 by NAT64", "RFC 6052"},
	{"64:ff9b::e000:0/100", "224.0.0.0/4 by NAT64", "RFC 6052"},
	{"64:ff9b::f000:0/100", "240.0.0.0/4 by NAT64", "RFC 6052"},
	{"64:ff9b:1::/48", "NAT64 of a local network", "RFC 8215"},
	{"100::/64", "discarded", "RFC 6666"},
	{"2001::/32", "Teredo: IPv4 addresses inside", "RFC 4380"},
	{"2001:db8:cb::/64", "the network of tier inet inside", "claudebox"},
	{"2002::/16", "6to4: IPv4 addresses inside", "RFC 3056"},
	{"fc00::/7", "unique local, with the metadata service of AWS and Tailscale", "RFC 4193"},
	{"fe80::/10", "link-local", "RFC 4291, 2.5.6"},
	{"fec0::/10", "site-local, of old", "RFC 3879"},
	{"ff00::/8", "multicast", "RFC 4291, 2.7"},
}

// Prefixes are all ranges of both families, parsed, in their order.
func Prefixes() []netip.Prefix {
	list := make([]netip.Prefix, len(Ranges))
	for i, r := range Ranges {
		list[i] = netip.MustParsePrefix(r.Prefix)
	}
	return list
}

// Set answers whether an address is forbidden. The zero Set forbids nothing;
// make one by [With].
type Set struct{ prefixes []netip.Prefix }

// With is the set of all ranges and some more: the host's addresses and
// networks.
func With(more ...netip.Prefix) Set { return Set{append(Prefixes(), more...)} }

// Refuses says why an address may not be reached; empty: it may. An address
// in the clothes of another family is judged by what it stands for, and one
// with a zone is refused: zones are for links.
func (s Set) Refuses(a netip.Addr) string {
	if !a.IsValid() {
		return "not an address"
	}
	if a.Zone() != "" {
		return "an address of a link"
	}
	a = a.Unmap()
	i := slices.IndexFunc(s.prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
	switch {
	case i < 0:
		return ""
	case i < len(Ranges):
		return Ranges[i].What
	}
	return fmt.Sprintf("this machine's own network %s", s.prefixes[i])
}
