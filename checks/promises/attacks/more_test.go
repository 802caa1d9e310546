//go:build lab

package attacks_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// What other tools obey in a folder, without being asked, is told by its name.
func TestAnAgentMakesWhatOtherToolsObey(t *testing.T) {
	names := []string{
		".jj/repo/config.toml", ".hg/hgrc", ".sl/config", ".pijul/config", ".bzr/branch/branch.conf", ".fslckout", "_FOSSIL_",
		".envrc", "mise.toml", "mise.local.toml", ".config/mise/config.toml", ".tool-versions", "devbox.json", "shell.nix",
		".lazygit.yml", ".lazy.lua", ".helix/languages.toml", ".claude/scheduled_tasks.json", ".ruby-version", "rust-toolchain",
	}
	for _, dir := range []string{".", "sub"} {
		t.Run(dir, func(t *testing.T) {
			w := newWorld(t)
			w.prepareSite(sites["the project"])
			w.folder("project/sub")
			got := w.claudebox("shell", "--yes", "--", "bash", "-ec", "cd "+dir+"; for f in "+strings.Join(names, " ")+`; do mkdir -p "$(dirname $f)"; echo x >$f; done`)
			for _, name := range names {
				top, _, inner := strings.Cut(name, "/")
				if says := strings.TrimPrefix(dir+"/", "./") + top; !inner && !strings.Contains(got.stderr, says+" ") || !strings.Contains(got.stderr, says) {
					t.Errorf("%s in %s is not told\n%s", name, dir, got)
				}
			}
		})
	}
}

// Below a project lies a repository of Mercurial, Sapling or jj, whose configuration is there: hooks in it run at the
// user's next `hg status`.
func TestAnAgentWritesTheConfigurationOfARepositoryOfAnotherKind(t *testing.T) {
	w := newWorld(t)
	files := []string{"hg/.hg/hgrc", "a/hg/.hg/hgrc-not-shared", "sl/.sl/config", "jj/.jj/repo/config.toml"}
	for _, file := range files {
		w.write("project/"+file, "mine\n")
	}
	got := w.claudebox("shell", "--yes", "--", "bash", "-c", "for f in "+strings.Join(files, " ")+"; do echo evil >>$f; rm -f $f; mv $f x; done; exit 0")
	for _, file := range files {
		if w.read("project/"+file) != "mine\n" {
			t.Errorf("%s was written to\n%s", file, got)
		}
	}
}

// A link in the place of a folder leads to what tools obey unasked, also of a folder that was there.
//
// Promise: nothing planted for your tools, unsaid.
func TestAnAgentLinksToWhatToolsObeyUnasked(t *testing.T) {
	w := newWorld(t)
	w.write("project/hg/.hg/requires", "store\n")
	w.write("project/hg/.hg/hgrc", "mine\n")
	l := w.begin()
	l.sh("mkdir e f; echo x >e/settings.json; echo x >f/config.toml; cp -r hg/.hg e/hg; mkdir sub; ln -s e .claude; ln -s ../e sub/.claude; ln -s f mise")
	l.sh("mv hg/.hg hg/old && ln -s ../e/hg hg/.hg")
	for _, name := range []string{".claude/settings.json", "sub/.claude/settings.json", "mise/config.toml", "hg/.hg/hgrc"} {
		must.Await(t, name+" is held back", func() bool {
			text, err := os.ReadFile(w.path("project/" + name))
			return err != nil || string(text) == "mine\n" // the agent could not move it
		})
	}
	l.end()
}

// What devbox, devenv and the like keep for a project, and take an environment from without asking, by direnv, too. git
// ignores it.
func TestAnAgentWritesTheEnvironmentThatAToolKeeps(t *testing.T) {
	w := newWorld(t)
	files := []string{
		".devbox/.nix-print-dev-env-cache", ".devbox/nix/profile/default", ".devenv/nix-eval-cache.db",
		".devenv/state/venv/bin/python", ".flox/run/x", ".pixi/envs/default/bin/python", ".bundle/config", "devenv.local.nix",
		"devenv.lock", "npins/sources.json",
	}
	for _, file := range files {
		w.write("project/"+file, "mine")
	}
	w.write("project/.gitignore", ".*/\ndevenv.*\nnpins/\n")
	got := w.claudebox("shell", "--yes", "--", "bash", "-ec", "for f in "+strings.Join(files, " ")+"; do rm $f; echo x >$f; done")
	for _, told := range []string{
		".devbox ", ".devbox/nix/profile ", ".devenv/nix-eval-cache.db ", ".devenv/state/venv/bin ", ".flox/run ",
		".pixi/envs/default/bin ", ".bundle/config ", "devenv.local.nix ",
		"devenv.lock ", "npins/sources.json ",
	} {
		if !strings.Contains(got.stderr, "changed  "+told) {
			t.Errorf("%s is not told\n%s", told, got)
		}
	}
}

// The user's git shows the commits that there are, whatever the agent's own shows.
func TestGitShowsOtherCommits(t *testing.T) {
	for what, script := range map[string]string{
		"a file": `git replace HEAD HEAD~1`,
		"packed": `git replace HEAD HEAD~1; git pack-refs --all`,
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.prepareSite(site{user: `git init -q project; cd project; git commit -qm x --allow-empty; git commit -qm y --allow-empty`})
			if got := w.claudebox("shell", "--yes", "--", "bash", "-ec", script); got.status != 0 {
				t.Error(got)
			}
			w.onTheHost(`cd project; test -z "$(git replace -l)"; test "$(git log --format=%s | wc -l)" = 2`)
		})
	}
}

// What the agent calls its folders orders nothing about when the report is shown.
func TestTheReportOrdersTheTerminalAbout(t *testing.T) {
	w := newWorld(t)
	w.prepareSite(sites["the project"])
	got := w.claudebox("shell", "--yes", "--", "bash", "-c", `for d in $'\e]0;owned\a' $'x\nclaudebox: all is well' $'\xff\x9b31m' $'a\rb'; do mkdir "$d"; echo x >"$d/.envrc"; git init -q "$d/r"; git -C "$d/r" config alias.x '!x'; mkfifo "$d/.gitattributes"; done`)
	if got.status != 0 || strings.ContainsAny(got.stderr, "\x1b\x07\r") || strings.Contains(got.stderr, "\xff\x9b") || strings.Contains(got.stderr, "\nclaudebox: all is well") || !strings.Contains(got.stderr, ".envrc") {
		t.Errorf("%q\n%s", got.stderr, got)
	}
	for line := range strings.Lines(got.stderr) {
		if _, back, is := strings.Cut(line, "back: "); is {
			t.Errorf("a way back that is not literal: %s", back)
		}
	}
}

// claudebox is killed amid its look at what the session left, and before it has held anything back.
func TestTheReviewIsKilled(t *testing.T) {
	rounds := trial.Count(2, 6)
	for n := range rounds + 1 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w, s := newWorld(t), sites["the project"]
			w.prepareSite(s)
			l := w.begin()
			line := "bash -c \"$(echo " + encoded(w.script(s, `for i in $(seq 12); do git init -q $W/r$i; git -C $W/r$i config core.fsmonitor "$EVIL"; evil $W/r$i/.git/hooks/post-index-change; done; mkdir -p $G/rebase-merge; echo '$(touch TAKEN)' >$G/rebase-merge/msgnum; echo 9 >$G/rebase-merge/end`)) + " | base64 -d)\""
			if n < rounds {
				l.sh(line)
			} else { // a claudebox that is stopped carries no input and no output
				l.sh("{ until [ -e go ]; do sleep 0.01; done; " + line + "; touch done; } >/dev/null 2>&1 &")
				l.cmd.Process.Signal(syscall.SIGSTOP)
				w.write("project/go", "")
				must.Await(t, "the agent's work", func() bool { return w.exists("project/done") })
			}
			l.in.Close()
			time.Sleep(time.Duration(90*n/rounds) * time.Millisecond) // anywhere in it, whatever the machine
			l.cmd.Process.Signal(syscall.SIGKILL)
			l.cmd.Wait()
			time.Sleep(200 * time.Millisecond)
			got := w.claudebox("shell", "--yes", "--", "true")
			w.wantHarmless(s, "")
			for i := range 12 {
				config := fmt.Sprintf("r%d/.git/config", i+1)
				told := config
				if to, _ := os.Readlink(w.path("project/" + filepath.Dir(config))); strings.Contains(to, "/held-back/") {
					continue // the next session goes on in it
				}
				if aside := config + ".claudebox-aside"; w.exists("project/" + aside) { // it was not held back yet
					config, told = aside, filepath.Dir(config)+"/HEAD"
				}
				adopted := !strings.Contains(w.read("project/"+config), "fsmonitor") // made anew by the user's git
				if !adopted && !strings.Contains(l.said.String()+got.stderr, told) {
					t.Errorf("of %s nobody was told; after the kill:\n%s", told, got.stderr)
					break
				}
				if left := fmt.Sprintf("project/r%d/.claudebox-link", i+1); w.exists(left) {
					t.Errorf("%s is left; after the kill:\n%s", left, got.stderr)
					break
				}
			}
		})
	}
}

// A covered file is got at by other means than its name.
func TestACoveredFileIsCopiedOrPunched(t *testing.T) {
	w := newWorld(t)
	w.prepareSite(sites["the project"])
	w.write("project/.env", "KEY="+canary+"\n")
	before := w.read("project/.git/config")
	got := w.attack(`cp --reflink=always .env x; cp .env y; ln .env z; cat x y z; fallocate -p -l 64 .env; fallocate -z -l 64 .env; truncate -s 0 .env; truncate -s 0 .git/config; fallocate -p -l 64 .git/config
		setfattr -n user.x -v y .env; chmod 777 .env; cat .env; dd if=.env bs=64 count=1 iflag=direct; tail -c +1 /proc/self/fd/0 <.env
		unshare -Urm sh -c 'umount .env; umount -l .git/config; cat .env; mount -t tmpfs none .git/hooks; mount --bind / /mnt; cat /mnt/'$PWD'/.env'
		unshare -Urm sh -c 'mount --move .git/config x; mount -o remount,rw,bind .env; echo x >.env'; mv .env e; rm -f .env; exec 7<.; cat /proc/self/fd/7/.env`)
	w.wantNoCanary(got)
	if w.read("project/.env") != "KEY="+canary+"\n" || w.read("project/.git/config") != before {
		t.Errorf("it was changed\n%s", got)
	}
	if info, err := os.Stat(w.path("project/.env")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info, err)
	}
}
