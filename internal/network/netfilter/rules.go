package netfilter

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Rule is one rule of what may leave the sandbox. The first that matches a
// packet decides; a packet that none matches is dropped.
type Rule struct {
	Name    string
	match   []expression
	verdict expression
}

// Rules are all rules, in their order. They say nothing of connections: each
// packet is judged by itself, so that what is forbidden later ends what was
// begun before.
func Rules() []Rule {
	rules := []Rule{
		{"loopback", []expression{outBy(loopback)}, accept},
	}
	for _, resolver := range Resolvers() {
		to := destination(resolver)
		rules = append(
			rules,
			Rule{"resolver " + resolver.String() + " udp", append(to, protocol(unix.IPPROTO_UDP), toPort(domain)), accept},
			Rule{"resolver " + resolver.String() + " tcp", append(to, protocol(unix.IPPROTO_TCP), toPort(domain)), accept},
		)
	}
	for _, kind := range neighbourDiscovery {
		rules = append(rules, Rule{kind.name, []expression{
			family(unix.NFPROTO_IPV6), protocol(unix.IPPROTO_ICMPV6), icmpType(kind.number),
		}, accept})
	}
	for _, f := range families {
		within := []expression{family(f.protocol), f.loadDestination(), isIn(f.set)}
		rules = append(
			rules,
			Rule{f.name + " forbidden tcp", append([]expression{protocol(unix.IPPROTO_TCP)}, within...), reset},
			Rule{f.name + " forbidden", within, refuse},
		)
	}
	for _, p := range protocols {
		rules = append(rules, Rule{p.name, []expression{protocol(p.number)}, accept})
	}
	return rules
}

// Resolvers are the addresses at which pasta answers names inside: one of
// each family, as it asks the host's resolver in the family that it is asked
// in. They are forbidden otherwise, and nothing but port 53 is let through.
func Resolvers() []netip.Addr {
	return []netip.Addr{netip.MustParseAddr(Resolver4), netip.MustParseAddr(Resolver6)}
}

// The resolvers' addresses: the one that podman has taken for it, and one of
// the network inside.
const (
	Resolver4 = "169.254.1.1"
	Resolver6 = "2001:db8:cb::53"
)

const (
	domain   = 53 // the port of DNS
	loopback = 1  // the index of lo in every namespace
)

// neighbourDiscovery is what IPv6 cannot do without on any link (RFC 4861).
// Here the link ends at pasta, and no router has to be asked for.
var neighbourDiscovery = []struct {
	name   string
	number byte
}{
	{"neighbour solicitation", 135},
	{"neighbour advertisement", 136},
}

// protocols are what pasta can carry.
var protocols = []struct {
	name   string
	number byte
}{
	{"tcp", unix.IPPROTO_TCP},
	{"udp", unix.IPPROTO_UDP},
	{"icmp", unix.IPPROTO_ICMP},
	{"icmpv6", unix.IPPROTO_ICMPV6},
}

// addressFamily says where a packet has its destination, and which set holds
// what is forbidden.
type addressFamily struct {
	name           string
	ipv4           bool
	protocol       byte
	set            string
	setType        uint32 // for nft(8) to show it
	offset, length uint32 // of the destination, in bytes
}

var families = []addressFamily{
	{"ipv4", true, unix.NFPROTO_IPV4, "forbidden4", 7, 16, 4},
	{"ipv6", false, unix.NFPROTO_IPV6, "forbidden6", 8, 24, 16},
}

func (f addressFamily) loadDestination() expression {
	return load(unix.NFT_PAYLOAD_NETWORK_HEADER, f.offset, f.length)
}

// destination matches one address.
func destination(a netip.Addr) []expression {
	f := families[0]
	if a.Is6() {
		f = families[1]
	}
	return []expression{family(f.protocol), both(f.loadDestination(), equals(a.AsSlice()...))}
}

func family(number byte) expression   { return both(meta(unix.NFT_META_NFPROTO), equals(number)) }
func protocol(number byte) expression { return both(meta(unix.NFT_META_L4PROTO), equals(number)) }

func outBy(index uint32) expression {
	return both(meta(unix.NFT_META_OIF), equals(binary.NativeEndian.AppendUint32(nil, index)...))
}

func toPort(number uint16) expression {
	return both(load(unix.NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2), equals(binary.BigEndian.AppendUint16(nil, number)...))
}

func icmpType(number byte) expression {
	return both(load(unix.NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1), equals(number))
}
