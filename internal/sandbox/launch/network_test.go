package launch

import (
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
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
			must.Do(t, err)
			for _, word := range []string{"--unshare-net"} {
				has := slices.ContainsFunc(lines, func(line Line) bool { return line[0].Text == word })
				if has != (word == tc.word) {
					t.Errorf("%s is there: %t", word, has)
				}
			}
		})
	}
}

func TestTheAgentIsToldOfItsNetwork(t *testing.T) {
	for name, tc := range map[string]struct {
		network plan.Network
		want    []string
	}{
		"the hosts":                 {plan.Network{Tier: "allow", Allow: []string{"a.example", "*.b.example"}}, []string{"a.example, *.b.example", "No proxy"}},
		"ports":                     {plan.Network{Tier: "none", In: []int{3000, 3001}, Out: []int{5432}}, []string{"loopback", "3000, 3001", "5432"}},
		"ports that are the host's": {plan.Network{Tier: "full", In: []int{3000}}, []string{"the host's own"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := networkText(tc.network)
			expect.Contains(t, text, tc.want...)
			if tc.network.Tier == "full" && strings.Contains(text, "3000") {
				t.Errorf("told of a port that needs no carrying: %q", text)
			}
		})
	}
}
