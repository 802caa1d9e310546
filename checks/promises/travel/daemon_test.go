//go:build lab

package travel_test

import (
	"strings"
	"testing"

	"claudebox/checks/kit/debian"
	"claudebox/checks/kit/expect"
	"claudebox/internal/nix/nixdaemon"
)

// reaching is a profile by which the agent reaches the host's daemon.
const reaching = `name: work
packages: [hello]
network: full
confirm: never
nix: {daemon: host}
`

// TestWhatTheHostsDaemonBuildsIsToldToRunOutside whatever the daemon's files say, which may be any. One that cannot
// tell whom it trusts is reached by nobody.
func TestWhatTheHostsDaemonBuildsIsToldToRunOutside(t *testing.T) {
	m := newMaker(t, reaching)
	cache := "substituters = file://" + m.path("cache") + "\ntrusted-public-keys = " + m.push(t, "cache", true) + "\n"
	onEach(t, func(t *testing.T, root string, d debian.Options) {
		c := newColleague(t, d, root, cache, m)
		if c.trust(t) == nixdaemon.TrustUnknown {
			refused(t, c, m)
			return
		}
		text, status := outcome(t, c.claudebox("shell", "--plan", m.path("plan.json"), "--yes", "--", "true"))
		if status != 0 {
			t.Errorf("exit status %d", status)
		}
		expect.Contains(t, strings.Join(strings.Fields(text), " "), "what the agent builds through the Nix daemon runs outside this sandbox")
	})
}

func refused(t *testing.T, c colleague, m maker) {
	t.Helper()
	text, status := outcome(t, c.claudebox("shell", "--plan", m.path("plan.json"), "--yes", "--", "true"))
	if status != 125 {
		t.Errorf("exit status %d", status)
	}
	expect.Contains(t, text, "it does not say that it distrusts you")
}
