package session

import (
	"strings"
	"testing"

	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/resolve"
)

// What is asked for and not there is refused, never left out.
func TestWhatIsNotBuiltIsRefused(t *testing.T) {
	for line, what := range map[string]string{
		"mcp: {import: [github]}":                    "mcp.import",
		"worktrees: [../wt-*]":                       "worktrees",
		"agent: {command: [x], home: {.x: persist}}": "agent.home",
		"nix: {builds: off}":                         "nix.builds: off",
		"network: {tier: allow, allow: [x.org]}":     "network tier allow",
		"ports: {in: [3000]}":                        "ports",
	} {
		t.Run(what, func(t *testing.T) {
			prof, _, err := profile.Parse("p.yaml", []byte("name: p\nextends: default\n"+line+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			refused := refuseWishes(prof)
			if refused == nil {
				refused = refuseUnbuilt(mustBuild(t, prof))
			}
			if refused == nil || !strings.Contains(refused.Error(), what) {
				t.Errorf("%s: got %v", line, refused)
			}
		})
	}
}

func mustBuild(t *testing.T, prof profile.Profile) plan.Plan {
	t.Helper()
	p, err := plan.Build(prof, resolve.Resolution{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
