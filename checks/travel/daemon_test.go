//go:build lab

package travel_test

import (
	"slices"
	"strings"
	"testing"

	"claudebox/internal/nix/nixdaemon"
)

// reaching is a profile by which the agent reaches the host's daemon.
const reaching = `name: work
packages: [hello]
network: full
confirm: never
nix: {daemon: host}
`

const (
	outside = "runs outside every sandbox: the daemon builds without one"
	relaxed = "when it asks for that (__noChroot): the daemon's sandbox is relaxed"
	unknown = "may run outside every sandbox: it did not build the probe that would say"
)

// TestADaemonThatBuildsOutsideASandboxIsToldOf whatever file says so: the one in
// NIX_CONF_DIR, or what that includes. It is asked once for each time that it
// was started. One that cannot tell whom it trusts is reached by nobody.
func TestADaemonThatBuildsOutsideASandboxIsToldOf(t *testing.T) {
	m := newMaker(t, reaching)
	cache := "substituters = file://" + m.path("cache") + "\ntrusted-public-keys = " + m.push(t, "cache", true) + "\n"
	m.write(t, "off.conf", "sandbox = false\n")
	m.write(t, "relaxed.conf", "sandbox = relaxed\n")
	onEach(t, func(t *testing.T, root string, d daemon) {
		c := newColleague(t, root, cache, m, d)
		if c.trust == nixdaemon.TrustUnknown {
			refused(t, c, m)
			return
		}
		for name, tc := range map[string]struct{ conf, want string }{
			"it has a sandbox":               {"sandbox = true\n", ""},
			"its file says no":               {"sandbox = false\n", outside},
			"an included file says no":       {"sandbox = true\ninclude " + m.path("off.conf") + "\n", outside},
			"an included file says relaxed":  {"sandbox = true\n!include " + m.path("relaxed.conf") + "\n", relaxed},
			"a file includes what is absent": {"sandbox = true\n!include /nowhere.conf\n", ""},
			"it builds nothing":              {"sandbox = true\nmax-jobs = 0\n", unknown},
		} {
			t.Run(name, func(t *testing.T) {
				c.stop()
				c.configure(t, cache+tc.conf)
				c.start(t, d)
				before := c.probes(t)
				toldOf(t, c, m, tc.want)
				first := c.probes(t)
				toldOf(t, c, m, tc.want)
				if again := c.probes(t); first == before || tc.want != unknown && again != first {
					t.Errorf("the first launch had %d built, the second %d", first-before, again-first)
				}
			})
		}
	})
}

func refused(t *testing.T, c colleague, m maker) {
	t.Helper()
	text, status := outcome(t, c.claudebox("shell", "--plan", m.path("plan.json"), "--yes", "--", "true"))
	if status != 125 {
		t.Errorf("exit status %d", status)
	}
	contains(t, text, "it does not say that it distrusts you")
}

// toldOf launches and wants one warning of the three, or none.
func toldOf(t *testing.T, c colleague, m maker, want string) {
	t.Helper()
	text, status := outcome(t, c.claudebox("shell", "--plan", m.path("plan.json"), "--yes", "--", "true"))
	if status != 0 {
		t.Errorf("exit status %d", status)
	}
	for _, warning := range []string{outside, relaxed, unknown} {
		if strings.Contains(strings.Join(strings.Fields(text), " "), warning) != (warning == want) {
			t.Errorf("want %q, and it says\n%s", want, text)
		}
	}
}

// probes counts what the daemon was given to build.
func (c colleague) probes(t *testing.T) int {
	t.Helper()
	return len(slices.DeleteFunc(c.has(t), func(name string) bool { return !strings.HasSuffix(name, "-claudebox-probe.drv") }))
}
