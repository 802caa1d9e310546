//go:build lab

package attacks_test

import (
	"os"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// A2: an agent closes a folder that is kept for it, and no later launch gets in.
func TestAnAgentClosesWhatTheNextLaunchNeeds(t *testing.T) {
	for n, mode := range []string{"000", "777", "500"} {
		for m, place := range []string{
			"~/.cache", "~/.npm", "~/.claude", "~/.claude/.claude.json", "~/.claude/settings.json", "~/.claude/.credentials.json",
			"~/.claude/projects", "~/.claude/agents-of-its-own", ".", "sub", "~/given",
		} {
			if trial.Short() && (n+m)%3 != 0 {
				continue // each place in one mode
			}
			t.Run(mode+" "+place, func(t *testing.T) {
				w := newWorld(t)
				w.folder("given")
				w.folder("project/sub")
				must.Do(t, os.Chmod(w.path("given"), 0o750))
				w.write(".claude/.credentials.json", `{"claudeAiOauth":{"accessToken":"a","refreshToken":"r","expiresAt":1}}`)
				w.write(".claude/settings.json", `{"model":"x"}`)
				flags := []string{"--mount-rw", "~/given"}
				w.attack("mkdir -p ~/.claude/projects ~/.claude/agents-of-its-own; chmod "+mode+" "+place, flags...)
				for name, want := range map[string]os.FileMode{"project": 0o755, "given": 0o750} {
					if at, err := os.Stat(w.path(name)); err != nil || at.Mode().Perm() != want {
						t.Errorf("%s is %v, %v", name, at.Mode(), err)
					}
				}
				script := `set -e; touch made ~/given/made ~/.claude/made ~/.npm/made ~/.cache/made; test -s ~/.claude/.claude.json -a -s ~/.claude/settings.json`
				if got := w.attack(script, flags...); got.status != 0 {
					t.Errorf("the next launch\n%s", got)
				}
			})
		}
	}
}

// A killed claudebox undoes nothing: the next one has to.
func TestAnAgentClosesWhatTheNextLaunchNeedsAndClaudeboxIsKilled(t *testing.T) {
	for _, place := range []string{"~/.cache", "~/.claude", "~/.claude/.claude.json"} {
		t.Run(place, func(t *testing.T) {
			w := newWorld(t)
			w.prepared("true")
			l := w.begin()
			l.sh("chmod 000 " + place)
			l.kill()
			if got := w.attack("set -e; touch ~/.claude/made ~/.cache/made"); got.status != 0 {
				t.Errorf("the next launch\n%s", got)
			}
		})
	}
}

// A10: a program that runs as the user for whoever starts it.
func TestAnAgentLeavesASetuidProgram(t *testing.T) {
	w := newWorld(t)
	w.folder("given")
	got := w.attack(`
		bash=$(command -v bash)
		mkdir a; for f in mine a/deep ~/given/beside ~/.cache/cached /tmp/other; do cp $bash $f; chmod 4755 $f; chmod u+s $f; done
		install -m 4755 $bash installed; cp $bash u; tar --mode=u+s -cf t u; rm u; tar -xpf t
		chmod 644 a/deep && mkdir shared && chmod 2775 shared && echo ordinary`, "--mount-rw", "~/given")
	if !strings.HasSuffix(got.stdout, "ordinary\n") {
		t.Errorf("ordinary modes fail\n%s", got)
	}
	for _, name := range []string{"project/mine", "project/a/deep", "project/installed", "project/u", "given/beside"} {
		if at, err := os.Stat(w.path(name)); err == nil && at.Mode()&os.ModeSetuid != 0 {
			t.Errorf("%s is %v", name, at.Mode())
		}
	}
	if !w.exists("project/mine") || !w.exists("given/beside") {
		t.Errorf("nothing was tried\n%s", got)
	}
}
