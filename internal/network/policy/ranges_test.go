package policy

import (
	"net/netip"
	"testing"
)

func TestEveryRangeIsMaskedSourcedAndApartFromTheOthers(t *testing.T) {
	prefixes := special()
	for i, p := range prefixes {
		if r := Ranges[i]; p != p.Masked() || r.What == "" || r.Source == "" {
			t.Errorf("%s: not masked, or without a word on it: %+v", p, r)
		}
		for _, other := range prefixes[:i] {
			if p.Overlaps(other) {
				t.Errorf("%s overlaps %s", p, other)
			}
			if other.Addr().Compare(p.Addr()) >= 0 {
				t.Errorf("%s stands behind %s", p, other)
			}
		}
	}
}

// NAT64 puts every IPv4 address below one prefix. What is forbidden in IPv4
// must be so there too, or a name with such an address would lead home.
func TestNAT64ReachesNoForbiddenAddress(t *testing.T) {
	for _, p := range special() {
		if !p.Addr().Is4() {
			continue
		}
		for _, a := range []netip.Addr{p.Addr(), last(p)} {
			for _, prefix := range []string{"64:ff9b::/96", "2001:db8:64::/96", "2001:db8:6400::/40", "2001:db8:64:64::/64"} {
				h := Host{NAT64: []netip.Prefix{netip.MustParsePrefix(prefix)}}
				if Refuses(h, behind(netip.MustParsePrefix(prefix), a)) == "" {
					t.Errorf("%s by NAT64 %s is let through", a, prefix)
				}
			}
		}
	}
}

func TestWhatMayBeBehindAnUnknownNAT64(t *testing.T) {
	h := Host{Networks: []netip.Prefix{netip.MustParsePrefix("fd00:77::/64")}}
	for _, unsure := range []bool{false, true} {
		h.Unsure = unsure
		for a, may := range map[string]bool{"2001:db8:64::c0a8:4d02": true, "fd00:77::5": false, "203.0.113.10": false, "::ffff:203.0.113.10": false} {
			if got := h.MayTranslate(netip.MustParseAddr(a)); got != (may && unsure) {
				t.Errorf("%s, unsure %v: %v", a, unsure, got)
			}
		}
	}
}

// behind is an IPv4 address behind a NAT64 prefix.
func behind(p netip.Prefix, a netip.Addr) netip.Addr {
	b, v4 := p.Addr().As16(), a.As4()
	for i, at := 0, p.Bits()/8; i < 4; at++ {
		if at == 8 && p.Bits() != 96 {
			continue
		}
		b[at] = v4[i]
		i++
	}
	return netip.AddrFrom16(b)
}

// last is the last address of an IPv4 prefix.
func last(p netip.Prefix) netip.Addr {
	b := p.Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		b[bit/8] |= 0x80 >> (bit % 8)
	}
	return netip.AddrFrom4(b)
}

func TestRefuses(t *testing.T) {
	here := Host{
		Addresses: []netip.Addr{netip.MustParseAddr("198.51.100.9")},
		Networks:  []netip.Prefix{netip.MustParsePrefix("203.0.113.64/26"), netip.MustParsePrefix("2001:db8:7::/64")},
	}
	for _, tc := range []struct {
		name, address string
		refused       bool
	}{
		{"an address of the internet", "203.0.113.10", false},
		{"an address of the IPv6 internet", "2001:db8::10", false},
		{"an internet address by NAT64", "64:ff9b::cb00:710a", false},
		{"the unspecified address, which is the loopback", "0.0.0.0", true},
		{"the unspecified IPv6 address", "::", true},
		{"the loopback", "127.1.2.3", true},
		{"the IPv6 loopback", "::1", true},
		{"the LAN", "192.168.77.2", true},
		{"the LAN, IPv4-mapped", "::ffff:192.168.77.2", true},
		{"the internet, IPv4-mapped", "::ffff:203.0.113.10", false},
		{"the LAN by 6to4", "2002:c0a8:4d02::1", true},
		{"metadata", "169.254.169.254", true},
		{"metadata of AWS by IPv6", "fd00:ec2::254", true},
		{"a tailnet", "100.100.100.100", true},
		{"the host agent of Azure", "168.63.129.16", true},
		{"its neighbour", "168.63.129.17", false},
		{"a service of IBM Cloud", "161.26.0.10", true},
		{"the nearest PCP server", "2001:1::1", true},
		{"a benchmark network", "2001:2::1", true},
		{"new documentation", "3fff::1", true},
		{"a root server of AS112, below 2001::/23", "2001:4:112::1", false},
		{"this machine's own public address", "198.51.100.9", true},
		{"its neighbour on the internet", "198.51.100.10", false},
		{"broadcast", "255.255.255.255", true},
		{"multicast", "ff02::1", true},
		{"an internet address with a zone", "2001:db8::10%eth0", true},
		{"a neighbour of the host", "203.0.113.70", true},
		{"a neighbour of the host by NAT64", "64:ff9b::cb00:7146", true},
		{"an IPv6 neighbour of the host", "2001:db8:7::5", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Refuses(here, netip.MustParseAddr(tc.address)); (got != "") != tc.refused {
				t.Errorf("%s: %q", tc.address, got)
			}
		})
	}
	if Refuses(here, netip.Addr{}) == "" {
		t.Error("what is no address is let through")
	}
}
