//go:build lab

package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheAgentsHomeIsKeptPerProject(t *testing.T) {
	w := newWorld(t)
	w.inside(t, `echo remembered >~/.claude/note; echo kept >~/.npm/note; echo lost >~/note; echo lost >/tmp/note`)
	wantEqual(t, w.inside(t, `cat ~/.claude/note ~/.npm/note; ls ~/note /tmp/note 2>/dev/null || echo gone`), "remembered\nkept\ngone\n")
	w.project = w.folder(t, "other")
	wantEqual(t, w.inside(t, `ls ~/.claude/note ~/.npm/note 2>/dev/null || echo nothing`), "nothing\n")
	if exists(w.path(".claude")) || exists(w.path(".npm")) {
		t.Error("the host's own home was written")
	}
}

func TestWorktreesOfARepositoryShareTheAgentsHome(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.git(t, "project", "worktree", "add", "-q", "-b", "side", w.path("side"))
	w.inside(t, `echo remembered >~/.claude/note`)
	w.project = w.path("side")
	wantEqual(t, w.inside(t, `cat ~/.claude/note`), "remembered\n")
}

func TestHowLongTheAgentsHomeLives(t *testing.T) {
	for state, want := range map[string]struct{ same, other string }{
		"project": {"kept\n", ""}, "shared": {"kept\n", "kept\n"}, "ephemeral": {"", ""},
	} {
		t.Run(state, func(t *testing.T) {
			w := newWorld(t)
			flags := []string{"--profile", w.profile(t, "state: "+state)}
			w.inside(t, `echo kept >~/.claude/note`, flags...)
			const look = `cat ~/.claude/note 2>/dev/null || true`
			wantEqual(t, w.inside(t, look, flags...), want.same)
			w.project = w.folder(t, "other")
			wantEqual(t, w.inside(t, look, flags...), want.other)
			if left, _ := filepath.Glob(w.path(".claudebox/ephemeral/*")); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// Two sessions of one project at once: each its own /tmp and processes, one
// project and one agent's home; the end of one leaves the other alone.
func TestTwoSessionsOfAProjectRunAtOnce(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	const meet = `
		me=%ME; other=%OTHER
		echo $me >/tmp/$me; echo $me >$me; echo $me >~/.claude/$me
		for i in $(seq 600); do [ -e $other ] && [ -e ~/.claude/$other ] && break; sleep 0.05; done
		[ "$me" = first ] || for i in $(seq 600); do [ -e gone ] && break; sleep 0.05; done
		ls /tmp ~/.claude/first ~/.claude/second; echo x >after-$me`
	script := func(me, other string) string { return strings.NewReplacer("%ME", me, "%OTHER", other).Replace(meet) }
	second := beside(t, w.session(script("second", "first")))
	first := run(t, w.session(script("first", "second")))
	w.write(t, "project/gone", "")
	for me, got := range map[string]outcome{"first": first, "second": <-second} {
		want := "HOME/.claude/first\nHOME/.claude/second\n\n/tmp:\n" + me + "\n"
		if got.status != 0 || w.normal(got.stdout) != want || got.stderr != "" {
			t.Errorf("%s: status %d, %q, %s", me, got.status, w.normal(got.stdout), got.stderr)
		}
	}
}

// The user's additions to Claude Code work inside and cannot be changed there.
func TestTheUsersAdditionsAreReadOnly(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"agents/a.md", "commands/c.md", "skills/s/SKILL.md", "output-styles/o.md", "rules/r.md"} {
		w.write(t, ".claude/"+name, "mine\n")
	}
	script := `for f in agents/a.md commands/c.md skills/s/SKILL.md output-styles/o.md rules/r.md; do
		cat ~/.claude/$f; if echo x >>~/.claude/$f; then echo written; fi; if rm -f ~/.claude/$f; then echo removed; fi; done 2>/dev/null`
	for range 2 { // the second finds what the first has made
		wantEqual(t, w.inside(t, script), strings.Repeat("mine\n", 5))
	}
	wantEqual(t, w.read(t, ".claude/agents/a.md"), "mine\n")
}

func TestTheFirstUseMakesAMemory(t *testing.T) {
	w := newWorld(t)
	inside := w.inside(t, `cat ~/.claude/CLAUDE.md`)
	if inside == "" || inside != w.read(t, ".claudebox/CLAUDE.md") {
		t.Errorf("inside is %q", inside)
	}
	w.write(t, ".claude/CLAUDE.md", "my own memory\n")
	if own := w.inside(t, `cat ~/.claude/CLAUDE.md`); !strings.Contains(own, "my own memory") {
		t.Errorf("of the user's own memory inside is %q", own)
	}
}

// What the agent is told has to be true of the very sandbox.
func TestTheAgentIsToldWhereItIs(t *testing.T) {
	for tier, want := range map[string][]string{
		"full": {"Network: full", "nix shell nixpkgs#NAME"}, "none": {"Network: none", "Nix builds into a store of this sandbox"},
	} {
		t.Run(tier, func(t *testing.T) {
			w := newWorld(t)
			w.repository(t)
			got := w.inside(t, `cat /etc/claude-code/CLAUDE.md`, "--network", tier, "--profile", w.profile(t))
			for _, want := range append(want, `profile "test"`, w.project, "`.git` is your own") {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in\n%s", want, got)
				}
			}
		})
	}
}

// Whatever ends a session, nothing of it stays behind on the host but the
// instance.
func TestNothingStaysBehind(t *testing.T) {
	for name, script := range map[string]string{
		"an ordinary end": "true", "a failure": "false", "a kill": "kill -KILL $$",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.repository(t)
			temporary := w.folder(t, "temporary")
			w.env["TMPDIR"], w.env["XDG_RUNTIME_DIR"] = temporary, temporary
			for range 2 { // the second keeps the plan
				run(t, w.session("true"))
			}
			before := names(w.files(t))
			run(t, w.session(script))
			wantEqual(t, names(w.files(t)), before)
			if entries, err := os.ReadDir(temporary); err != nil || len(entries) > 0 {
				t.Errorf("left are %v, %v", entries, err)
			}
		})
	}
}

// names are files without their times.
func names(files []string) string {
	var b strings.Builder
	for _, file := range files {
		name, _, _ := strings.Cut(file, " ")
		b.WriteString(name + "\n")
	}
	return b.String()
}
