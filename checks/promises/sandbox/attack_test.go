//go:build lab

package sandbox_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// An agent makes its project look like a part of another repository, so that
// the next session has that one mounted.
func TestAPlantedRepositoryOpensNoOther(t *testing.T) {
	for name, plant := range trial.Some(3, map[string]string{
		"a .git file that names another repository":    `echo "gitdir: $OTHER/.git" >.git`,
		"a .git file that names a worktree of another": `echo "gitdir: $OTHER/.git/worktrees/evil" >.git`,
		"a worktree whose commondir is another's": `
			mkdir -p fake/worktrees/x; echo "gitdir: $PWD/fake/worktrees/x" >.git
			echo "$PWD/.git" >fake/worktrees/x/gitdir; echo "$OTHER/.git" >fake/worktrees/x/commondir; echo ref: refs/heads/main >fake/worktrees/x/HEAD`,
		"a commondir in a repository of its own": `git init -q .; echo "$OTHER/.git" >.git/commondir`,
		"a link to another repository":           `ln -s "$OTHER/.git" .git`,
		"a relative link to another":             `ln -s ../other/.git .git`,
		"alternates of another's objects":        `git init -q .; echo "$OTHER/.git/objects" >.git/objects/info/alternates`,
		"a working tree elsewhere":               `git init -q .; git config core.worktree "$OTHER"`,
		"a submodule's folder elsewhere":         `git init -q .; mkdir -p .git/modules sub; ln -s "$OTHER/.git" .git/modules/sub; echo "gitdir: ../.git/modules/sub" >sub/.git`,
		"a nested repository elsewhere":          `git init -q .; mkdir sub; echo "gitdir: $OTHER/.git" >sub/.git`,
		"hooks elsewhere":                        `git init -q .; rm -r .git/hooks; ln -s "$OTHER" .git/hooks`,
		"objects elsewhere":                      `git init -q .; rm -r .git/objects; ln -s "$OTHER/.git/objects" .git/objects`,
		"a configuration that includes another":  `git init -q .; git config include.path "$OTHER/.git/config"`,
	}) {
		for _, root := range []string{"cwd", "git-root"} {
			t.Run(name+", project: "+root, func(t *testing.T) {
				w := newWorld(t)
				other := w.folder(t, "other")
				w.git(t, "other", "init", "-q", "-b", "main")
				w.write(t, "other/"+canary, canary)
				w.git(t, "other", "add", ".")
				w.git(t, "other", "commit", "-qm", canary)
				w.git(t, "other", "config", "x.y", canary)
				profile := w.profile(t, "project: "+root)
				w.inside(t, "OTHER="+other+"; "+plant, "--profile", profile)
				if got := run(t, w.search("--profile", profile)); got.status == 125 {
					return // refused
				} else if got.status != 0 {
					t.Errorf("status %d, %s", got.status, got.stderr)
				} else if held := findings(t, got.stdout); len(held) > 0 {
					t.Errorf("found: %q", held)
				}
				wantEqual(t, w.inside(t, "git -C "+other+" log -1 2>/dev/null || true; ls "+other+" 2>/dev/null || true", "--profile", profile), "")
			})
		}
	}
}

// What an agent leaves in its project and home must not widen its next session.
func TestAnAgentCannotWidenItsNextSession(t *testing.T) {
	for name, plant := range map[string]string{
		"by a project's profile":           `printf 'mounts: [{host: ~/.ssh, mode: ro, secret: true}]\nnetwork: full\n' >.claudebox.yaml`,
		"by a profile in the project":      `mkdir -p profiles; printf 'name: default\nmounts: [{host: ~/.ssh, mode: ro, secret: true}]\n' | tee default default.yaml profiles/default.yaml >/dev/null`,
		"by a profile in its home":         `mkdir -p ~/.claudebox/profiles ~/.config/claudebox/profiles; printf 'name: default\nmounts: [{host: ~/.ssh, mode: ro, secret: true}]\n' | tee ~/.claudebox/profiles/default.yaml ~/.config/claudebox/profiles/default.yaml >/dev/null`,
		"by settings of its home":          `echo '{"permissions":{"additionalDirectories":["'"$HOME"'/.ssh"]}}' >~/.claude/settings.json`,
		"by a link out of its cache":       `ln -s "$HOME"/.ssh ~/.cache/x`,
		"by a git configuration":           `printf '[include]\n path = %s/.ssh/id\n' "$HOME" >.gitconfig`,
		"by an environment file":           `printf 'CLAUDEBOX_EXTRA_ENV=SECRET\nexport SECRET\n' | tee .env .envrc >/dev/null`,
		"by its folder's name for a mount": `mkdir -p ../project/--ro-bind`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(t, ".ssh/id", canary)
			w.env["SECRET"] = canary
			w.inside(t, plant)
			next := run(t, w.search())
			if held := findings(t, next.stdout); next.status != 0 || len(held) > 0 {
				t.Errorf("status %d, found %q\n%s", next.status, held, next.stderr)
			}
		})
	}
}

// A hostile project brings programs by the names that claudebox needs.
func TestAProgramOfTheProjectIsNotRunOnTheHost(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	for _, name := range []string{"bwrap", "git", "env", "bash", "nix", "nix-instantiate", "nix-store", "claudebox-network", "claudebox-stage", "claudebox-helper", "ls", "ldd", "claude", "node"} {
		w.script(t, "project/bin/"+name, "#!/bin/sh\ntouch "+w.path("ran-"+name)+"\nexec /usr/bin/false\n")
	}
	for key, value := range map[string]string{
		"core.fsmonitor": "touch " + w.path("ran-fsmonitor"), "core.pager": "touch " + w.path("ran-pager"),
		"core.sshCommand": "touch " + w.path("ran-ssh"), "diff.external": "touch " + w.path("ran-diff"), "alias.log": "!touch " + w.path("ran-alias"),
	} {
		w.git(t, "project", "config", key, value)
	}
	w.env["PATH"] = w.project + "/bin:.:bin:" + w.env["PATH"]
	profile := w.profile(t, "packages: [hello]")
	succeedWarned(t, w.session("true", "--profile", profile), "obey what is written there") // PATH has the project
	for _, words := range [][]string{{"plan"}, {"check"}, {"--dry-run"}, {"--yes"}} {
		run(t, w.claudebox(words...))
	}
	if ran, _ := filepath.Glob(w.path("ran-*")); len(ran) > 0 {
		t.Errorf("run on the host: %q", ran)
	}
}

// /proc leads through other processes to what they have open, or came from.
func TestNoProcessLeadsOutOfTheSandbox(t *testing.T) {
	w := newWorld(t)
	got := w.inside(t, `
		own=$(stat -L -c %d:%i /)
		for p in /proc/[0-9]*; do
			for d in root cwd; do
				at=$(stat -L -c %d:%i $p/$d/ 2>/dev/null) || continue
				[ $d = cwd ] || [ "$at" = "$own" ] || echo "$p/$d is another root"
				ls $p/$d/etc/shadow $p/$d/../../../../etc/shadow 2>/dev/null || true
			done
			ls -d $p/root/oldroot $p/root/newroot 2>/dev/null || true
		done`)
	wantEqual(t, got, "")
}

// How the caller was started must not show, or matter, inside.
func TestTheCallersCircumstancesDoNotMatter(t *testing.T) {
	for name, set := range map[string]string{
		"a strict umask":      "umask 0777",
		"no umask":            "umask 0",
		"few open files":      "ulimit -n 80",
		"ignored signals":     "trap '' HUP INT TERM PIPE",
		"a low priority":      "renice -n 19 $$ >/dev/null",
		"a folder that moved": "cd .. && cd project",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.inside(t, "true")
			inner := w.withProbe([]string{"list"})
			cmd := exec.Command("/bin/sh", append([]string{"-c", set + ` && exec "$@"`, "sh"}, inner.Args...)...)
			cmd.Dir, cmd.Env = inner.Dir, inner.Env
			want := must.Read(t, "testdata/listing-full.txt")
			wantEqual(t, w.normalListing(succeed(t, cmd)), want)
		})
	}
}

// Where homes are links (/home to /usr/home), the home inside lies where HOME
// says, and nothing more of the real one is there.
func TestAHomeBehindALinkShowsNothingMore(t *testing.T) {
	w := newWorld(t)
	w.hideCanaries(t)
	link := w.link(t, w.home, top+"/link-"+filepath.Base(w.home))
	w.env["HOME"] = link
	got := run(t, w.search())
	if got.status != 0 {
		t.Fatalf("status %d, %s", got.status, got.stderr)
	}
	for _, line := range findings(t, got.stdout) {
		t.Error(line)
	}
	wantEqual(t, strings.ReplaceAll(w.inside(t, `echo "$HOME"; pwd; echo x >~/.claude/kept; touch here`), link, "LINK"), "LINK\n"+w.project+"\n")
}

// A home behind a link, as on machines with homes on a disk of their own: the first launch makes claudebox's folder.
func TestAFirstLaunchInAHomeBehindALink(t *testing.T) {
	w := newWorld(t)
	w.env["HOME"] = w.link(t, w.home, top+"/link-"+filepath.Base(w.home))
	w.inside(t, "echo x >~/.claude/kept")
	wantEqual(t, w.inside(t, "cat ~/.claude/kept"), "x\n")
}

// CLAUDEBOX_HOME may lie anywhere; it is no less a secret there.
func TestAMovedClaudeboxFolderIsNotInside(t *testing.T) {
	w := newWorld(t)
	w.env["CLAUDEBOX_HOME"] = w.path("boxes")
	other := *w
	other.project = w.folder(t, "other")
	other.inside(t, "echo "+canary+" >~/.claude/kept")
	w.wantNothing(t, w.search())
	for _, flag := range []string{"--mount-ro", "--mount-rw"} {
		wantRefused(t, run(t, w.session("true", flag, "~/boxes")), "boxes")
	}
	w.project = w.path("boxes/instances")
	wantRefused(t, run(t, w.session("true")), "as the project")
}
