//go:build lab

package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// A program outside the store is mounted with its folder. Where that folder
// holds more than a program, it must not come along.
func TestAnAgentOutsideTheStoreBringsNothingElse(t *testing.T) {
	for name, place := range map[string]string{
		"in the home itself":        "claude",
		"in a folder of programs":   "bin/claude",
		"in the XDG folder of them": ".local/bin/claude",
		"in a folder of its own":    "opt/claude/claude",
		"in a folder of keys":       ".ssh/claude",
		"behind a link":             "linked/claude",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.hideCanaries(t)
			must.Do(t, os.Remove(w.path(".local/bin/claude")))
			file := w.path(place)
			if place == "linked/claude" {
				file = w.path("target/claude")
				w.link(t, file, place)
				w.write(t, "linked/secret", canary)
			}
			w.folder(t, filepath.Dir(file))
			must.Do(t, os.Link(probe, file))
			w.env["PATH"] = filepath.Dir(w.path(place)) + ":/usr/bin:/bin"
			got := run(t, w.claudebox("--yes", "--no-report", "search", reversed(canary)))
			if got.status == 125 || got.status == 126 {
				return // refused
			}
			if got.status != 0 {
				t.Fatalf("status %d, %s", got.status, got.stderr)
			}
			for _, line := range findings(t, got.stdout) {
				t.Error(line)
			}
		})
	}
}

// What the caller's environment or home names may lie in the project: people
// keep their dotfiles in a repository. An agent that works there turns it into
// a link to what it would like to see next time.
func TestWhatIsTakenByWayOfTheProjectLeadsNowhereElse(t *testing.T) {
	for name, set := range map[string]func(*testing.T, *world){
		"the certificate bundle": func(t *testing.T, w *world) {
			w.env["SSL_CERT_FILE"] = w.write(t, "project/thing", "")
		},
		"the certificate bundle, for Nix": func(t *testing.T, w *world) {
			w.env["NIX_SSL_CERT_FILE"] = w.write(t, "project/thing", "")
		},
		"the user's skills": func(t *testing.T, w *world) {
			w.link(t, "../project/thing", ".claude/skills")
			w.folder(t, "project/thing")
		},
		"the user's settings": func(t *testing.T, w *world) {
			w.link(t, "../project/thing", ".claude/settings.json")
			w.write(t, "project/thing", "{}")
		},
		"the user's memory": func(t *testing.T, w *world) {
			w.link(t, "../project/thing", ".claude/CLAUDE.md")
			w.write(t, "project/thing", "")
		},
		"the user's identity": func(t *testing.T, w *world) {
			w.link(t, "project/thing", ".gitconfig")
			w.write(t, "project/thing", "")
		},
		"a mount by a link": func(t *testing.T, w *world) {
			w.link(t, "project/thing", "data")
			w.folder(t, "project/thing")
			w.env["CLAUDEBOX_PROFILE"] = w.profile(t, "mounts: [{host: ~/data, mode: ro, optional: true}]")
		},
	} {
		for _, target := range []string{"other/secret", "other"} {
			t.Run(name+" to "+target, func(t *testing.T) {
				w := newWorld(t)
				w.write(t, "other/secret", canary+"\n")
				set(t, w)
				for _, script := range []string{"true", `{ rm -r thing && ln -s ../` + target + ` thing; } 2>/dev/null || true`} { // what git obeys cannot be removed
					if got := run(t, w.session(script)); got.status != 0 { // a bundle that is none is told
						t.Fatal(got)
					}
				}
				got := run(t, w.search())
				if got.status == 125 {
					return // refused
				}
				if got.status != 0 {
					t.Fatalf("status %d, %s", got.status, got.stderr)
				}
				for _, line := range findings(t, got.stdout) {
					if !strings.HasPrefix(line, "found: link ") {
						t.Error(line)
					}
				}
			})
		}
	}
}
