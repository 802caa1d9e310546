package launch

import (
	"slices"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/plan"
)

// What every launch has, whatever else is in it.
func TestNoLaunchIsWithoutItsWalls(t *testing.T) {
	for name, l := range map[string]Launch{
		"by words":                  Launch{Tier: "full"}.byWords(),
		"at a gate":                 {Tier: "full"},
		"with a network of its own": {Tier: "inet", Plan: plan.Plan{Network: plan.Network{Tier: "inet"}}},
	} {
		t.Run(name, func(t *testing.T) {
			lines, _, err := l.Words()
			must.Do(t, err)
			var words []string
			for _, line := range lines {
				for _, word := range line {
					words = append(words, word.Text)
				}
			}
			for _, want := range [][]string{
				{"--unshare-user"},
				{"--unshare-pid"},
				{"--unshare-ipc"},
				{"--unshare-uts"},
				{"--disable-userns"},
				{"--cap-drop", "ALL"},
				{"--die-with-parent"},
				{"--seccomp"},
				{"--clearenv"},
			} {
				at := slices.Index(words, want[0])
				if at < 0 || !slices.Equal(words[at:at+len(want)], want) {
					t.Errorf("no %q in %q", want, words)
				}
			}
		})
	}
}
