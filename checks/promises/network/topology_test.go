//go:build lab

package network_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
	"claudebox/checks/promises/network/world"
)

// F1, F5: hosts whose way to the internet is not one default route. The internet
// is reached, and what is the host's own stays closed.
func TestAHostWithMoreThanOneWayOut(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		arrange func(*world.World) error
		beside  string // a target that is reached by the same device as the internet is, and is a part of it
	}{
		"a VPN for all but private networks": {(*world.World).SplitVPN, "public VPN"},
		"two gateways at once":               {(*world.World).SpreadOut, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			must.Do(t, tc.arrange(w))
			got := cellsOf(succeed(t, newUser(t, w).probe(t, "inet", "matrix")))
			problems, _ := differences("inet", got)
			for _, problem := range problems {
				if tc.beside == "" || !strings.HasPrefix(problem, tc.beside+" in tier") {
					t.Error(problem)
				}
			}
		})
	}
}

// A container has a user namespace of its own, and no tun: claudebox works in one
// as on the host.
func TestInAContainerWithoutATun(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"inet", "allow"} {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			u := newUser(t, w)
			inner := u.probe(t, tier, "matrix")
			words := append([]string{"--unshare-user", "--unshare-pid", "--bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--"}, claudeboxWords(t, inner.Args)...)
			outer := w.Command(u.layout, trial.Tool(t, "bwrap"), words...)
			outer.Dir, outer.Env, outer.WaitDelay = inner.Dir, inner.Env, patience
			cellsOf(succeed(t, outer)).want(t, tier)
			usual(tier)[0].wantNothingOut(t, w, tier)
		})
	}
}

// claudeboxWords are the words of a command of [world.World.Command].
func claudeboxWords(t *testing.T, args []string) []string {
	t.Helper()
	var told struct{ Words []string }
	must.Do(t, json.Unmarshal([]byte(args[1]), &told))
	return slices.Clone(told.Words)
}
