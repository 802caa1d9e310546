package policy_test

import (
	"net/netip"
	"strings"
	"testing"

	"claudebox/internal/network/policy"
)

const (
	eth, other, tunnel = 2, 3, 7
	lan, router        = "192.168.77.10/24", "192.168.77.1"
)

func address(text string) policy.Address {
	p := netip.MustParsePrefix(text)
	return policy.Address{IP: p.Addr(), Network: p.Masked()}
}

// routes are lines "PREFIX [via GATEWAY]" of one device.
func routes(device int, lines ...string) (list []policy.Route) {
	for _, line := range lines {
		prefix, gateway, via := strings.Cut(line, " via ")
		r := policy.Route{To: netip.MustParsePrefix(prefix), Device: device}
		if via {
			r.Gateway = netip.MustParseAddr(gateway)
		}
		list = append(list, r)
	}
	return list
}

// exceptPrivate is what WireGuard's programs write for "exclude private IPs".
var exceptPrivate = strings.Fields(`0.0.0.0/5 8.0.0.0/7 11.0.0.0/8 12.0.0.0/6 16.0.0.0/4 32.0.0.0/3 64.0.0.0/2 128.0.0.0/3
	160.0.0.0/5 168.0.0.0/6 172.0.0.0/12 172.32.0.0/11 172.64.0.0/10 172.128.0.0/9 173.0.0.0/8 174.0.0.0/7 176.0.0.0/4
	192.0.0.0/9 192.128.0.0/11 192.160.0.0/13 192.169.0.0/16 192.170.0.0/15 192.172.0.0/14 192.176.0.0/12 192.192.0.0/10
	193.0.0.0/8 194.0.0.0/7 196.0.0.0/6 200.0.0.0/5 208.0.0.0/4`)

func TestConnected(t *testing.T) {
	home := append(routes(eth, "0.0.0.0/0 via "+router, "192.168.77.0/24"), routes(1, "127.0.0.0/8")...)
	for _, tc := range []struct {
		name             string
		addresses        []string
		routes           []policy.Route
		refused, reached []string
	}{
		{"a laptop at home", []string{lan}, home, []string{"192.168.77.10", "192.168.77.2", router}, []string{"8.8.8.8", "203.0.113.10"}},
		{
			"a LAN of public addresses",
			[]string{"198.51.100.9/24"},
			routes(eth, "0.0.0.0/0 via 198.51.100.1", "198.51.100.0/24"),
			[]string{"198.51.100.9", "198.51.100.1", "198.51.100.77"},
			[]string{"203.0.113.10"},
		},
		{
			"an IPv6 LAN that gives no address by itself",
			nil,
			routes(eth, "::/0 via fe80::1", "2001:db8:77::/64"),
			[]string{"2001:db8:77::5"},
			[]string{"2001:db8::10"},
		},
		{
			"split-route VPN (F1): Google and GitHub are no network of this machine",
			[]string{lan, "10.7.0.2/32"},
			append(routes(tunnel, exceptPrivate...), home...),
			[]string{"192.168.77.2"},
			[]string{"8.8.8.8", "140.82.121.4", "172.217.16.14", "203.0.113.10"},
		},
		{
			"OpenVPN halves the default route",
			[]string{lan, "10.8.0.6/24"},
			append(routes(tunnel, "0.0.0.0/1 via 10.8.0.1", "128.0.0.0/1 via 10.8.0.1"), append(home, routes(eth, "198.51.100.7/32 via "+router)...)...),
			[]string{"192.168.77.2", "10.8.0.1"},
			[]string{"8.8.8.8", "140.82.121.4"},
		},
		{
			"a company's VPN for its own public networks",
			[]string{lan, "10.9.0.2/32"},
			append(routes(tunnel, "198.51.100.0/24", "20.0.0.0/11"), home...),
			[]string{"198.51.100.80", "20.1.2.3"},
			[]string{"8.8.8.8"},
		},
		{
			"a network that this machine answers for, on a tunnel to the internet",
			nil,
			append(routes(tunnel, "0.0.0.0/0"), policy.Route{To: netip.MustParsePrefix("203.0.113.0/28"), Device: tunnel, Local: true}),
			[]string{"203.0.113.5"},
			[]string{"203.0.113.16"},
		},
		{
			"ECMP and via gateways (F5)",
			[]string{lan, "198.51.100.130/25"},
			append(routes(eth, "0.0.0.0/0 via 203.0.113.1"), routes(other, "0.0.0.0/0 via 203.0.113.129", "0.0.0.0/0 via 2001:db8:77::1")...),
			[]string{"203.0.113.1", "203.0.113.129", "2001:db8:77::1", "198.51.100.200"},
			[]string{"203.0.113.2", "8.8.8.8"},
		},
		{
			"IPv6 through a tunnel that leaves the private networks out",
			nil,
			append(routes(tunnel, "2000::/3"), routes(eth, "::/0 via fe80::1", "2001:db8:77::/64")...),
			[]string{"2001:db8:77::1"},
			[]string{"2001:db8::10", "2600::1"},
		},
		{
			"a road to somewhere of the default route's device",
			[]string{lan},
			append(routes(eth, "198.51.100.0/24 via 192.168.77.3"), home...),
			[]string{"192.168.77.3"},
			[]string{"198.51.100.4"},
		},
		{
			"addresses that all lead to this machine",
			nil,
			append([]policy.Route{{To: netip.MustParsePrefix("203.0.113.0/28"), Device: 1, Local: true}, {To: netip.MustParsePrefix("203.0.113.99/32"), Device: 1, Local: true}}, home...),
			[]string{"203.0.113.5", "203.0.113.99"},
			[]string{"203.0.113.16"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var list []policy.Address
			for _, a := range tc.addresses {
				list = append(list, address(a))
			}
			h := policy.Connected(list, tc.routes)
			for _, a := range tc.refused {
				if policy.Refuses(h, netip.MustParseAddr(a)) == "" {
					t.Errorf("%s is reached", a)
				}
			}
			for _, a := range tc.reached {
				if why := policy.Refuses(h, netip.MustParseAddr(a)); why != "" {
					t.Errorf("%s is refused: %s", a, why)
				}
			}
		})
	}
}

func TestDiscovered(t *testing.T) {
	for _, tc := range []struct{ answer, want string }{
		{"64:ff9b::c000:aa", "64:ff9b::/96"},
		{"2001:db8:64::c000:ab", "2001:db8:64::/96"},
		{"2001:db8:c000:aa::", "2001:db8::/32"},
		{"2001:db8::1", ""},
	} {
		got := policy.Discovered([]netip.Addr{netip.MustParseAddr(tc.answer)})
		text := ""
		for _, p := range got {
			text += p.String()
		}
		if text != tc.want {
			t.Errorf("%s: got %q; want %q", tc.answer, text, tc.want)
		}
	}
}
