package brokering

import (
	"strings"
	"testing"

	"claudebox/internal/plan"
)

// A secret for localhost went nowhere in tiers with a network of their own, and nothing said so.
func TestASecretForAServiceOfThisMachineSaysHowFarItGets(t *testing.T) {
	named := plan.Secret{Variable: "KEY", Hosts: []string{"localhost:4000", "x.example"}}
	for tier, want := range map[string]string{
		"full":       "KEY is sent to localhost:4000 by https alone",
		"inet":       "KEY is not sent to localhost:4000, which is the sandbox's own in tier inet: ",
		"allow":      "and `ports: {out: [4000]}` leads there",
		"allow 4000": "`secret: inside` at its entry lets it in as it is",
	} {
		name, port, carried := strings.Cut(tier, " ")
		n := plan.Network{Tier: name}
		if carried {
			n.Out = []int{4000}
		}
		var made Part
		made.noteOwn(n, named)
		said := strings.Join(append(made.Notes, made.Warnings...), "\n")
		if !strings.Contains(said, want) || carried && strings.Contains(said, port+"]") || strings.Contains(said, "x.example") {
			t.Errorf("%s: it says %q", tier, said)
		}
	}
}
