//go:build lab

package network_test

import (
	"slices"
	"strings"
	"testing"

	"claudebox/checks/promises/network/world"
	"claudebox/internal/network/dns"
)

// layouts are how hosts keep their resolvers, and which of the world's resolvers
// may answer then: in tier inet an IPv4 one is asked before the others.
var layouts = map[string]struct {
	files  world.Layout
	answer string
}{
	"systemd-resolved's stub, behind a link": {world.Systemd, "stub"},
	"systemd-resolved's list, behind a link": {
		world.Layout{
			"/etc/resolv.conf":                 "-> /run/systemd/resolve/resolv.conf",
			"/run/systemd/resolve/resolv.conf": "nameserver 203.0.113.53\nsearch lan\n",
		}, "public",
	},
	"the LAN's router":                {plain("nameserver 192.168.77.1\n"), "router"},
	"the tailnet":                     {plain("nameserver 100.100.100.100\nsearch tail0.ts.net\n"), "tailnet"},
	"several":                         {plain("nameserver 192.168.77.1\nnameserver 203.0.113.53\nnameserver 100.100.100.100\n"), "router"},
	"IPv6 alone":                      {plain("nameserver 2001:db8:ffff::53\n"), "public 6"},
	"IPv6 before IPv4":                {plain("nameserver 2001:db8:ffff::53\nnameserver 192.168.77.1\n"), "public 6|router"},
	"the router's link-local address": {plain("nameserver fe80::1%eth0\n"), "link-local"},
	"a chain of links": {
		world.Layout{
			"/etc/resolv.conf":                        "-> ../run/resolvconf/resolv.conf",
			"/run/resolvconf/resolv.conf":             "-> ../NetworkManager/resolv.conf",
			"/run/NetworkManager/resolv.conf":         "-> no-stub-resolv.conf",
			"/run/NetworkManager/no-stub-resolv.conf": "# made by NetworkManager\n\nnameserver 192.168.77.1\noptions timeout:1\n",
		}, "router",
	},
}

func plain(content string) world.Layout { return world.Layout{"/etc/resolv.conf": content} }

// wide are the tiers that resolve names.
var wide = slices.DeleteFunc(slices.Clone(tiers), func(tier string) bool { return tier == "none" || tier == "allow" })

func TestNamesResolveWhateverResolverTheHostHas(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	for _, tier := range wide {
		for _, c := range usual(tier) {
			for name, layout := range layouts {
				t.Run(c.name+", "+name, func(t *testing.T) {
					t.Parallel()
					u := c.user(t, w)
					u.layout = layout.files
					wantNames(t, succeed(t, u.probe(t, tier, "names", "text:server.test", "good.test", "rebind.test", "nobody.test")), layout.answer)
				})
			}
		}
	}
}

func wantNames(t *testing.T, got, servers string) {
	t.Helper()
	server, rest, _ := strings.Cut(got, "\n")
	if _, name, _ := strings.Cut(server, "\t"); !slices.Contains(strings.Split(servers, "|"), name) {
		t.Errorf("%q answers, want %q", name, servers)
	}
	wantEqual(t, rest, "good.test\t2001:db8:ffff::10 203.0.113.10\nrebind.test\t192.168.77.2\nnobody.test\t(no such host)\n")
}

// A name that is asked for is a message to whoever answers. In tier allow those of
// the list have addresses of their own, and nobody is asked.
func TestNoNameIsAskedForInTiersWithoutInternet(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"allow", "none"} {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			v4, v6, _ := dns.NewNames().Addresses("good.test")
			for _, c := range usual(tier) {
				for _, f := range lines(succeed(t, c.user(t, w).probe(t, tier, "names", "good.test", "secret.other.test"))) {
					if f[1][0] != '(' && (tier == "none" || f[0] != "good.test" || f[1] != v4.String()+" "+v6.String()) {
						t.Errorf("%s is %s", f[0], f[1])
					}
				}
				c.wantNothingOut(t, w, tier)
			}
		})
	}
}

// An answer that fits no datagram comes by TCP.
func TestALongAnswerComesWhole(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	for _, tier := range wide {
		for _, c := range usual(tier) {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				got := succeed(t, c.user(t, w).probe(t, tier, "names", "text:big.test"))
				wantEqual(t, got, "big.test\t"+world.BigAnswer()+"\n")
			})
		}
	}
}
