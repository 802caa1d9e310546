package launch

import (
	"slices"
	"strings"
	"testing"

	"claudebox/internal/plan"
)

func TestWhoMakesTheNetwork(t *testing.T) {
	for name, tc := range map[string]struct {
		network plan.Network
		own     bool
		word    string
	}{
		"full":                      {plan.Network{Tier: "full"}, false, ""},
		"full with ports":           {plan.Network{Tier: "full", In: []int{3000}}, false, ""},
		"none":                      {plan.Network{Tier: "none"}, false, "--unshare-net"},
		"none with a port":          {plan.Network{Tier: "none", In: []int{3000}}, true, ""},
		"allow":                     {plan.Network{Tier: "allow", Allow: []string{"example.org"}}, true, ""},
		"inet":                      {plan.Network{Tier: "inet"}, true, ""},
		"a tier that nobody knows":  {plan.Network{Tier: "other"}, false, ""},
		"inet with ports both ways": {plan.Network{Tier: "inet", In: []int{1}, Out: []int{2}}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := Launch{Tier: tc.network.Tier, Plan: plan.Plan{Network: tc.network}}
			if l.OwnNetwork() != tc.own {
				t.Errorf("a network of claudebox's making: %t", l.OwnNetwork())
			}
			lines, _, err := l.Words()
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range []string{"--unshare-net"} {
				has := slices.ContainsFunc(lines, func(line Line) bool { return line[0].Text == word })
				if has != (word == tc.word) {
					t.Errorf("%s is there: %t", word, has)
				}
			}
		})
	}
}

func TestTheProxyGetsOutOfTheWayOfPorts(t *testing.T) {
	for _, tc := range []struct {
		in, out []int
		want    int
	}{{nil, nil, 3128}, {[]int{3000}, nil, 3128}, {[]int{3128}, []int{3129}, 3130}} {
		if got := ProxyPort(plan.Network{In: tc.in, Out: tc.out}); got != tc.want {
			t.Errorf("in %v, out %v: port %d; want %d", tc.in, tc.out, got, tc.want)
		}
	}
}

// What a profile says of proxies counts in other tiers: in this one no other is
// within reach, and an exception would only make a program fail.
func TestTheProxysVariablesWin(t *testing.T) {
	p := plan.Plan{
		Network: plan.Network{Tier: ProxiedTier, Allow: []string{"example.org"}, In: []int{3128}},
		Env: []plan.Env{
			{Name: "HTTPS_PROXY", From: plan.FromConst, Value: "http://other:1"},
			{Name: "no_proxy", From: plan.FromConst, Value: "*"},
			{Name: "X", From: plan.FromConst, Value: "1"},
		},
	}
	got := map[string]string{}
	for _, v := range variables(p, Host{}, late{}) {
		if _, twice := got[v.Name]; twice {
			t.Errorf("%s is there twice", v.Name)
		}
		got[v.Name] = v.Value
	}
	for name, want := range map[string]string{
		"HTTPS_PROXY": "http://127.0.0.1:3129", "http_proxy": "http://127.0.0.1:3129",
		"no_proxy": "localhost,127.0.0.1,::1,claudebox", "NODE_USE_ENV_PROXY": "1", "X": "1",
	} {
		if got[name] != want {
			t.Errorf("%s is %q; want %q", name, got[name], want)
		}
	}
	p.Network.Tier = "inet"
	for _, v := range variables(p, Host{}, late{}) {
		if v.Name == "HTTP_PROXY" || v.Name == "HTTPS_PROXY" && v.Value != "http://other:1" {
			t.Errorf("in tier inet, %s is %q", v.Name, v.Value)
		}
	}
}

func TestTheAgentIsToldOfItsNetwork(t *testing.T) {
	for name, tc := range map[string]struct {
		network plan.Network
		want    []string
	}{
		"the hosts and the proxy":   {plan.Network{Tier: "allow", Allow: []string{"a.example", "*.b.example"}}, []string{"a.example, *.b.example", "socks5h://127.0.0.1:3128"}},
		"ports":                     {plan.Network{Tier: "none", In: []int{3000, 3001}, Out: []int{5432}}, []string{"loopback", "3000, 3001", "5432"}},
		"ports that are the host's": {plan.Network{Tier: "full", In: []int{3000}}, []string{"the host's own"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := networkText(tc.network)
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("there is no %q in %q", want, text)
				}
			}
			if tc.network.Tier == "full" && strings.Contains(text, "3000") {
				t.Errorf("told of a port that needs no carrying: %q", text)
			}
		})
	}
}
