package hostnet

import (
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/internal/network/netlink"
)

func TestThisMachinesLoopbackIsAmongItsNetworks(t *testing.T) {
	n, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"127.0.0.0/8", "127.0.0.1/32"} {
		if !slices.Contains(n.Prefixes, netip.MustParsePrefix(want)) {
			t.Errorf("%s is not in %v", want, n.Prefixes)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for b.Loop() {
		if _, err := Read(); err != nil {
			b.Fatal(err)
		}
	}
}

// message is what the kernel tells of an address or a route.
func message(kind uint16, header []byte, attributes map[uint16]string) netlink.Answer {
	m := netlink.New(kind, 0, header...)
	for name, text := range attributes {
		if text == "lo" {
			m.Native(name, 1)
			continue
		}
		m.Bytes(name, netip.MustParseAddr(text).AsSlice())
	}
	return netlink.Answer{Type: kind, Body: m[unix.SizeofNlMsghdr:]}
}

func TestWhatAnAddressOrARouteForbids(t *testing.T) {
	route := func(family, bits, kind byte, attributes map[uint16]string) netlink.Answer {
		return message(unix.RTM_NEWROUTE, []byte{family, bits, 0, 0, 0, 0, 0, kind, 0, 0, 0, 0}, attributes)
	}
	for name, tc := range map[string]struct {
		told       netlink.Answer
		want       []string
		ipv4, ipv6 bool
	}{
		"an address and its network": {
			told: message(unix.RTM_NEWADDR, []byte{unix.AF_INET, 24, 0, 0, 2, 0, 0, 0}, map[uint16]string{unix.IFA_LOCAL: "203.0.113.9", unix.IFA_ADDRESS: "203.0.113.9"}),
			want: []string{"203.0.113.0/24", "203.0.113.9/32", "64:ff9b::cb00:7100/120", "64:ff9b::cb00:7109/128"},
		},
		"both ends of a tunnel": {
			told: message(unix.RTM_NEWADDR, []byte{unix.AF_INET6, 128, 0, 0, 2, 0, 0, 0}, map[uint16]string{unix.IFA_LOCAL: "2001:db8::1", unix.IFA_ADDRESS: "2001:db8::2"}),
			want: []string{"2001:db8::1/128", "2001:db8::2/128"},
		},
		"a route of a VPN": {
			told: route(unix.AF_INET6, 48, unix.RTN_UNICAST, map[uint16]string{unix.RTA_DST: "2001:db8:5::"}),
			want: []string{"2001:db8:5::/48"},
		},
		"the default route, and its gateway": {
			told: route(unix.AF_INET6, 0, unix.RTN_UNICAST, map[uint16]string{unix.RTA_GATEWAY: "fe80::1"}),
			want: []string{"fe80::1/128"}, ipv6: true,
		},
		"half a default route":       {told: route(unix.AF_INET, 1, unix.RTN_UNICAST, map[uint16]string{unix.RTA_DST: "128.0.0.0"})},
		"a default route to nowhere": {told: route(unix.AF_INET, 0, unix.RTN_UNREACHABLE, nil)},
		"the one of the loopback":    {told: route(unix.AF_INET6, 0, unix.RTN_UNICAST, map[uint16]string{unix.RTA_OIF: "lo"})},
		"a message cut short":        {told: netlink.Answer{Type: unix.RTM_NEWROUTE, Body: []byte{unix.AF_INET, 24}}},
	} {
		t.Run(name, func(t *testing.T) {
			var n Network
			n.address(tc.told)
			n.route(tc.told)
			var got []string
			slices.SortFunc(n.Prefixes, compare)
			for _, p := range slices.Compact(n.Prefixes) {
				got = append(got, p.String())
			}
			if !slices.Equal(got, tc.want) || n.IPv4 != tc.ipv4 || n.IPv6 != tc.ipv6 {
				t.Errorf("got %q, IPv4 %v, IPv6 %v; want %q, %v, %v", got, n.IPv4, n.IPv6, tc.want, tc.ipv4, tc.ipv6)
			}
		})
	}
}
