package policy

import (
	"net/netip"
	"sync"
)

// Range is a range of addresses, what it is for, and the source of that.
type Range struct {
	Prefix string // in CIDR notation, masked
	What   string
	Source string
}

// Ranges are the special-purpose addresses, which no host on the internet has, in order. An
// IPv4 address behind a NAT64 prefix is judged as the IPv4 address, see [Host.NAT64].
//
// The documentation networks 198.51.100.0/24, 203.0.113.0/24 and 2001:db8::/32
// are not among them: they are not used, and tests need addresses that count as internet.
var Ranges = []Range{
	{"0.0.0.0/8", "this network; Linux takes 0.0.0.0 for the loopback", "RFC 791, 3.2"},
	{"10.0.0.0/8", "private", "RFC 1918"},
	{"100.64.0.0/10", "carrier-grade NAT, Tailscale", "RFC 6598"},
	{"127.0.0.0/8", "loopback", "RFC 1122, 3.2.1.3"},
	{"161.26.0.0/16", "services of IBM Cloud, public addresses", "IBM Cloud Docs: Cloud IaaS service endpoints"},
	{
		"168.63.129.16/32", "the host agent of Azure, a public address",
		"Microsoft, Azure: What is IP address 168.63.129.16?",
	},
	{"169.254.0.0/16", "link-local, with the metadata service of clouds", "RFC 3927"},
	{"172.16.0.0/12", "private", "RFC 1918"},
	{"192.0.0.0/24", "protocol assignments, with DS-Lite and the metadata service of Oracle", "RFC 6890"},
	{"192.0.2.0/24", "documentation; the sandbox's own network", "RFC 5737"},
	{"192.88.99.0/24", "6to4 relays", "RFC 7526"},
	{"192.168.0.0/16", "private", "RFC 1918"},
	{"198.18.0.0/15", "benchmarks; made-up addresses of VPN programs, and of tier allow", "RFC 2544"},
	{"224.0.0.0/4", "multicast", "RFC 5771"},
	{"240.0.0.0/4", "reserved, with broadcast", "RFC 1112, RFC 919"},

	{"::/96", "unspecified, loopback, IPv4-compatible", "RFC 4291, 2.5"},
	{"::ffff:0:0/96", "IPv4-mapped", "RFC 4291, 2.5.5.2"},
	{"::ffff:0:0:0/96", "IPv4-translated", "RFC 2765"},
	{"64:ff9b:1::/48", "NAT64 of a local network", "RFC 8215"},
	{"100::/64", "discarded", "RFC 6666"},
	{"100:0:0:1::/64", "a dummy prefix", "RFC 9780"},
	{"2001::/32", "Teredo: IPv4 addresses inside", "RFC 4380"},
	{"2001:1::/32", "services of the nearest router: PCP, TURN, DNS-SD", "RFC 7723, RFC 8155, RFC 9665"},
	{"2001:2::/48", "benchmarks", "RFC 5180"},
	{"2001:10::/28", "ORCHID, of old", "RFC 4843"},
	{"2001:db8:cb::/48", "the sandbox's own network", "claudebox"},
	{"2002::/16", "6to4: IPv4 addresses inside", "RFC 3056"},
	{"3fff::/20", "documentation", "RFC 9637"},
	{"5f00::/16", "segment routing", "RFC 9602"},
	{"fc00::/7", "unique local, with the metadata service of AWS and Tailscale", "RFC 4193"},
	{"fe80::/10", "link-local", "RFC 4291, 2.5.6"},
	{"fec0::/10", "site-local, of old", "RFC 3879"},
	{"ff00::/8", "multicast", "RFC 4291, 2.7"},
}

// special are the ranges, parsed.
var special = sync.OnceValue(func() []netip.Prefix {
	list := make([]netip.Prefix, len(Ranges))
	for i, r := range Ranges {
		list[i] = netip.MustParsePrefix(r.Prefix)
	}
	return list
})
