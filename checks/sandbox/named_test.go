//go:build lab

package sandbox_test

import (
	"os"
	"testing"
)

// An agent that cannot reach what answers it says "Not logged in": claudebox says why, also where nobody is asked.
func TestAnAgentThatReachesNothingIsNamed(t *testing.T) {
	w := newWorldHere(t)
	must(t, os.Remove(w.path(".local/bin/claude")))
	w.script(t, ".local/bin/claude", "#!/bin/bash\nexit 0\n")
	for name, tc := range map[string]struct{ profile, says string }{
		"no network":             {"network: none", "claude reaches no model"},
		"a list without its API": {"network: {tier: allow, allow: [github]}", "api.anthropic.com is not listed"},
		"a list with it":         {"network: {tier: allow, allow: [anthropic]}", ""},
		"all":                    {"network: inet", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, w.claudebox("-y", "--profile", w.profile(t, tc.profile)))
			if got.status != 0 {
				t.Fatalf("status %d: %s", got.status, got.stderr)
			}
			if tc.says == "" {
				wantEqual(t, got.stderr, "")
			} else {
				wantContains(t, got.stderr, tc.says)
			}
		})
	}
	wantEqual(t, succeed(t, w.claudebox("shell", "-y", "--network", "none", "--", "echo", "a shell")), "a shell\n")
}

// A shell.nix alone is not entered: what would enter it is named, from a subfolder, too.
func TestAShellNixAloneIsNamed(t *testing.T) {
	w := newWorldHere(t)
	w.plain(t, "git init -q .")
	w.write(t, "project/a/shell.nix", "{ }")
	w.write(t, "project/a/b/c", "")
	cmd := w.claudebox("devshell")
	cmd.Dir = w.path("project/a/b")
	wantContains(t, succeed(t, cmd), "`devshell: {file: a/shell.nix}` in a profile")
}
