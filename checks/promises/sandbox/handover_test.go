//go:build lab

package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// plain runs the user's plain git and shell in the project, beside a session perhaps.
func (w *world) plain(t *testing.T, script string) string {
	t.Helper()
	out, err := w.tryPlain(script)
	if err != nil {
		t.Errorf("the user: %s: %v\n%s", script, err, out)
	}
	return out
}

// tryPlain is plain for a script that may fail.
func (w *world) tryPlain(script string) (string, error) {
	cmd := exec.Command("bash", "-ec", script)
	cmd.Dir = w.project
	cmd.Env = append(w.environment(), "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@x",
		"GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@x", "GIT_EDITOR=true")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

const identity = "[user]\n\tname = Ada\n\temail = ada@example.org\n"

// The agent makes orders for git, in each place of its git folder. Meanwhile a prompt asks git again and again.
func TestTheUsersPromptRunsNothingWhileTheAgentPlants(t *testing.T) {
	const sm = `git init -q $d; git -C $d config core.fsmonitor "touch $PWD/TAKEN; false"; git -C $d status >/dev/null`
	for name, plant := range map[string]string{
		"a submodule that is not checked out": strings.ReplaceAll(sm, "$d", "there"),
		"a submodule whose folder is gone":    strings.ReplaceAll(sm, "$d", "gone"),
		"a gitlink with a monitor":            `git init -q sub; git -C sub commit -q --allow-empty -m x; git -C sub config core.fsmonitor "touch $PWD/TAKEN; false"; git add sub; git commit -qm sub`,
		"settings and hooks":                  `git config core.fsmonitor "touch $PWD/TAKEN; false"; git config core.pager "touch $PWD/TAKEN"; printf "#!/bin/sh\ntouch $PWD/TAKEN\n" >.git/hooks/post-index-change; chmod +x .git/hooks/*`,
		"a log as a link":                     `mkdir -p .git/logs; rm -f .git/logs/HEAD; ln -sf "$PWD/../rc" .git/logs/HEAD; git commit -qm x --allow-empty || :`,
		"another common folder":               `mkdir evil; cp -r .git/* evil; git config -f evil/config core.fsmonitor "touch $PWD/TAKEN; false"; echo ../evil >.git/commondir`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.repository(t)
			w.write(t, ".gitconfig", identity)
			w.write(t, "rc", "mine\n")
			w.plain(t, `for d in there gone; do git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),$d; done; git commit -qm links; mkdir there`)
			session := beside(t, w.session(plant+`; rm -f TAKEN; touch planted; for i in $(seq 600); do [ -e seen ] && break; sleep 0.05; done`))
			must.Appear(t, w.path("project/planted"))
			w.plain(t, `rm -f TAKEN; for i in $(seq 10); do git status >/dev/null; git log --oneline -3 >/dev/null; git diff >/dev/null; done; git commit -qm mine --allow-empty || git commit -qm mine --allow-empty; git stash list`) // the agent's commit may come between
			if exists(w.path("project/TAKEN")) || w.read(t, "rc") != "mine\n" {
				t.Error("the user's git obeyed the agent")
			}
			w.write(t, "project/seen", "")
			if got := <-session; got.status != 0 {
				t.Errorf("status %d, %s", got.status, got.stderr)
			}
			w.plain(t, `rm -f TAKEN; git status >/dev/null; git log --oneline -3 >/dev/null; git commit -qm again --allow-empty; [ -z "$(git fsck --strict --no-dangling 2>&1)" ]`)
			if exists(w.path("project/TAKEN")) || w.read(t, "rc") != "mine\n" {
				t.Error("after the session, the user's git obeyed the agent")
			}
		})
	}
}

// What the user's tools obey unasked, and was not there when the session began.
var unasked = []string{
	".vscode/settings.json", ".cursor/settings.json", ".idea/workspace.xml", ".zed/settings.json", ".claude/settings.json",
	".claude/settings.local.json", ".claude/hooks/x", ".tool-versions", "mise.toml", ".mise.toml", "mise.dev.toml", ".config/mise.toml",
	".mise/config.toml", "mise/config.toml", ".envrc.local", ".direnv/bin/x", ".autoenv", ".rvmrc", ".lazy.lua", ".lvimrc", ".dir-locals.el",
	".hg/hgrc", ".sl/config", ".jj/repo/config.toml", ".bzr/README", ".pijul/config", ".fslckout", "_FOSSIL_", "sub/.git/config",
	"sub/mise.toml", "new/sub/.tool-versions", "bare/config", ".claude/scheduled_tasks.json", "rust-toolchain", "new/rust-toolchain.toml",
	".helix/languages.toml", ".vim/coc-settings.json", ".vimrc", "sub/_vimrc", ".exrc",
	"hg/.hg/hgrc", "hg/.hg/hgrc-not-shared", ".config/mise/conf.d/x.toml", "sub/.mise/conf.d/x.toml", ".sdkmanrc", "sub/.node-version",
	".prototools", ".shadowenv.d/x.lisp",
}

// plantAll makes all of these, and waits until the host says that it has looked.
func plantAll() string {
	var b strings.Builder
	b.WriteString("mkdir -p sub new/sub; git init -q --bare bare; git init -q sub; ")
	for _, name := range unasked {
		b.WriteString("mkdir -p " + filepath.Dir(name) + "; echo planted >>" + name + "; ")
	}
	return b.String()
}

// While the agent works, and after claudebox was killed, none of it is there for the user's tools. Then it is, and told.
//
// Promise: nothing planted for your git.
func TestNothingThatToolsObeyUnaskedIsThereBeforeTheSessionEnds(t *testing.T) {
	for name, killed := range map[string]bool{"the session ends": false, "claudebox is killed": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.repository(t)
			w.write(t, "project/sub/old", "")
			w.write(t, "project/hg/.hg/requires", "store\n")
			cmd := w.claudebox("shell", "--yes", "--", "bash", "-euc", plantAll()+`cat `+strings.Join(unasked, " ")+` >/tmp/all; [ $(grep -c planted /tmp/all) = `+
				strconv.Itoa(len(unasked))+` ]; for i in $(seq 600); do git status --porcelain >status; grep -qE "vscode|mise.toml" status || break; sleep 0.05; done; touch planted; for i in $(seq 600); do [ -e seen ] && break; sleep 0.05; done`)
			session := make(chan outcome)
			if killed {
				must.Do(t, cmd.Start())
			} else {
				go func() {
					got := run(t, cmd)
					if got.status != 0 {
						t.Errorf("status %d, %s", got.status, got.stderr)
						w.write(t, "project/planted", "")
					}
					session <- got
				}()
			}
			must.Appear(t, w.path("project/planted"))
			there := func(file string) bool {
				_, err := os.Stat(w.path("project/" + file)) // a link counts by what it leads to
				return err == nil
			}
			for end := time.Now().Add(patience); slices.ContainsFunc(unasked, there); time.Sleep(20 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%s is there", unasked[slices.IndexFunc(unasked, there)])
				}
			}
			if killed {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}
			if i := slices.IndexFunc(unasked, there); i >= 0 {
				t.Errorf("%s is there", unasked[i])
			}
			if status := w.read(t, "project/status"); strings.Contains(status, "vscode") || strings.Contains(status, "mise.toml") {
				t.Errorf("git inside shows a link:\n%s", status)
			}
			w.write(t, "project/seen", "")
			var told string
			if killed {
				told = run(t, w.claudebox("shell", "--yes", "--", "true")).stderr
			} else {
				told = (<-session).stderr
			}
			for _, file := range unasked {
				if !there(file) {
					t.Errorf("%s is not there afterwards", file)
				}
			}
			expect.Contains(t, told, ".vscode/settings.json", ".tool-versions", ".envrc.local")
			if again := w.inside(t, "git status --porcelain"); !strings.Contains(again, ".vscode") {
				t.Errorf("the next session's git passes over it:\n%s", again)
			}
		})
	}
}

// A prompt stands in the folder of a repository while the agent makes it, gives it orders, and ends. What the agent
// committed, staged and tagged there is the user's then; of its orders nothing. It waits until the repository is held
// back: the prompt's git may have its lock until then.
//
// Promise: nothing planted for your git.
func TestARepositoryThatTheAgentMakesRunsNothingAndIsTheUsers(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", identity)
	w.write(t, "project/sub/f", "")
	prompt := exec.Command("bash", "-c", `cd sub; while [ ! -e ../stop ]; do git status >/dev/null 2>&1; git branch >/dev/null 2>&1; done`)
	prompt.Dir, prompt.Env = w.project, append(w.environment(), "GIT_CONFIG_SYSTEM=/dev/null")
	must.Do(t, prompt.Start())
	const orders = `git config core.fsmonitor "echo x >>$PWD/../TAKEN; false"; git config alias.x '!true'; printf "#!/bin/sh\necho x >>$PWD/../TAKEN\n" >.git/hooks/post-index-change; chmod +x .git/hooks/*`
	told := run(t, w.claudebox("shell", "--yes", "--", "bash", "-euc", `cd sub; git init -q -b main; until [ -L .git ]; do sleep 0.01; done; sleep 0.1; rm -f .git/index.lock; touch TAKEN; git add f; git commit -qm one; git tag t; git switch -qc work; echo y >g; git add g; git remote add origin https://example.org/x.git; `+orders+"; rm -f ../TAKEN; sleep 1; rm -f ../TAKEN"))
	w.plain(t, `sleep 0.5; touch stop`)
	_ = prompt.Wait()
	if taken := w.path("project/TAKEN"); exists(taken) {
		t.Errorf("it ran %d times", strings.Count(w.read(t, "project/TAKEN"), "x"))
	}
	const want = "one\nwork\nA  g\n?? TAKEN\nmain\nwork\nt\nhttps://example.org/x.git\nnone\nnone"
	if got := w.plain(t, `cd sub; git log --format=%s; git branch --show-current; git status --porcelain; git branch --format="%(refname:short)"; git tag; git remote get-url origin; git config core.fsmonitor || echo none; ls .git/hooks 2>/dev/null || echo none; git fsck --strict`); got != want {
		t.Errorf("the user has\n%s\nwant\n%s\n%s", got, want, told.stderr)
	}
	if got := w.inside(t, `cd sub; git commit -qm two; git log --format=%s`); got != "two\none\n" {
		t.Errorf("the next session has %q", got)
	}
	w.plain(t, `cd sub; [ "$(git log -1 --format=%s)" = two ]`)
}

// A session that ends while another lives takes nothing of the other's away.
func TestASecondSessionEndsAndTheFirstKeepsItsRepositories(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", identity)
	first := beside(t, w.session(`git init -q a1; mkdir .vscode; echo x >.vscode/s.json; sleep 0.3; git -C a1 commit -qm one --allow-empty; touch begun; for i in $(seq 600); do [ -e seen ] && break; sleep 0.05; done; git -C a1 commit -qm two --allow-empty; cat .vscode/s.json`))
	must.Appear(t, w.path("project/begun"))
	w.inside(t, "git init -q b1; git -C b1 commit -qm b --allow-empty; sleep 0.3")
	w.write(t, "project/seen", "")
	if got := <-first; got.status != 0 || got.stdout != "x\n" {
		t.Errorf("the first: status %d, %q, %s", got.status, got.stdout, got.stderr)
	}
	if got := w.plain(t, "git -C a1 log --format=%s; git -C b1 log --format=%s; cat .vscode/s.json"); got != "two\none\nb\nx" {
		t.Errorf("the user has\n%s", got)
	}
}

// What the user clones or makes in the project while the agent works is the user's. No agent writes there, or reads a
// login in it, wherever it moves the folder; the next session has a git folder of its own.
func TestTheAgentWritesInARepositoryThatTheUserMakesMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", identity)
	session := beside(t, w.claudebox("shell", "--yes", "--", "bash", "-uc", `touch begun; until [ -e ready ]; do sleep 0.05; done; mv clone moved; sleep 0.3
			{ d=moved/.git; cat $d/config; printf '[core]\n\tfsmonitor = "touch %s/TAKEN; false"\n' $PWD >>$d/config
				mkdir $d/hooks; printf '#!/bin/sh\ntouch %s/TAKEN\n' $PWD >$d/hooks/pre-commit; chmod +x $d/hooks/*
			} 2>/dev/null; echo gitdir: $PWD/evil 2>/dev/null >tree/.git; mv moved clone`))
	must.Appear(t, w.path("project/begun"))
	// A git that clones for longer is at work beside it: a small clone may have ended before it is looked at.
	w.plain(t, `mkdir ../b; printf '#!/bin/sh\nsleep 3\n' >../b/git; chmod +x ../b/git; ../b/git clone & sleep 0.2
		git clone -q . clone; sleep 0.5; git -C clone config user.token s3cret-of-the-user; git worktree add -q tree; sleep 0.3; wait; touch ready`)
	got := <-session
	if got.status != 0 || strings.Contains(got.stdout, "s3cret") || strings.Contains(got.stdout, "[core]") {
		t.Errorf("status %d; the agent reads %q\n%s", got.status, got.stdout, got.stderr)
	}
	after := w.plain(t, `for d in clone tree; do git -C $d status >/dev/null 2>&1 || git -C $d log -1 >/dev/null; done; for d in clone tree; do git -C $d commit -qm x --allow-empty; done
		[ ! -e TAKEN ]; git -C clone config user.token`)
	wantEqual(t, after, "s3cret-of-the-user")
	if strings.Contains(got.stderr, "made inside") || !strings.Contains(got.stderr, "clone: it is yours, made while the session ran") {
		t.Error(got.stderr)
	}
	w.inside(t, "for d in clone tree; do git -C $d commit -qm next --allow-empty; done")
	wantEqual(t, w.plain(t, "for d in clone tree; do git -C $d log -1 --format=%s; done"), "next\nnext")
}

// What cannot become a repository of the user's is none outside, at no moment; one name brings it back.
func TestARepositoryThatCannotBecomeTheUsers(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", identity)
	session := beside(t, w.claudebox("shell", "--yes", "--", "bash", "-uc", `m() { git -C $1 config core.fsmonitor "touch $PWD/TAKEN; false"; git -C $1 status >/dev/null; }
			for d in broken borrows mid; do git init -q $d; git -C $d commit -qm one --allow-empty; m $d; done; rm -r broken/.git/objects/??; git init -q /tmp/e; echo /tmp/e/.git/objects >borrows/.git/objects/info/alternates; rm -r borrows/.git/objects/??
			git init -q --bare bare; git -C bare config core.bare false; git -C bare config core.worktree ..; m bare; mkdir led; echo gitdir: ../bare >led/.git; mkdir -p node_modules/m; git init -q node_modules/m; m node_modules/m
			until [ -L broken/.git -a -L borrows/.git -a -L led/.git -a -L bare ]; do sleep 0.01; done; rm -f TAKEN; touch begun; sleep 1`))
	must.Appear(t, w.path("project/begun"))
	var got outcome
	for lives := true; lives; {
		select {
		case got = <-session:
			lives = false
		default:
			w.plain(t, `for d in broken borrows bare led; do git -C $d status || :; done >/dev/null 2>&1`)
		}
	}
	w.plain(t, `for d in broken borrows mid bare led node_modules/m; do git -C $d status; git -C $d commit -qm x --allow-empty; done >/dev/null 2>&1 || :; [ ! -e TAKEN ]; git -C mid log --format=%s | grep one`)
	expect.Contains(t, got.stderr, "held back  borrows/.git", "held back  broken/.git", "taken out  bare/HEAD", "taken out  node_modules/m/.git/HEAD")
	if said := run(t, w.claudebox("git")); !strings.Contains(said.stdout, "broken: a repository that the agent made is held back") {
		t.Errorf("claudebox git says %v", said)
	}
	ended := run(t, w.claudebox("shell", "--yes", "--", "bash", "-euc", "git -C broken config core.fsmonitor; rm -r broken/.git; git init -q broken; git -C broken commit -qm mended --allow-empty"))
	if ended.status != 0 || !strings.Contains(ended.stderr, "held back  borrows/.git") {
		t.Error(ended)
	}
	w.plain(t, `[ ! -e TAKEN ]; git -C broken log --format=%s | grep mended; mv bare/HEAD.claudebox-aside bare/HEAD; git -C bare config core.fsmonitor`)
}

// Many repositories that cannot become the user's are one line, and none is judged again before it changes.
func TestManyRepositoriesThatCannotBecomeTheUsers(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", identity)
	session := func(script string) *exec.Cmd { return w.claudebox("shell", "--yes", "--", "bash", "-euc", script) }
	got := run(t, session(`for i in 1 2 3 4 5 6 7; do git init -q b$i; git -C b$i commit -qm one --allow-empty; rm -r b$i/.git/objects/??; until [ -L b$i/.git ]; do sleep 0.01; done; done`))
	const refused, held = "and 4 more: the repositories that were made there did not become yours", "held back  b1/.git, b2/.git, b3/.git and 4 more"
	expect.Contains(t, got.stderr, refused, held)
	again := run(t, session("true"))
	if strings.Contains(again.stderr, refused) || !strings.Contains(again.stderr, held) {
		t.Errorf("the next session says %s", again.stderr)
	}
	if said := run(t, w.claudebox("git")); !strings.Contains(said.stdout, "b7: a repository that the agent made is held back: until it changes: ") {
		t.Errorf("claudebox git says %v", said)
	}
	mended := run(t, session("rm -r b3/.git; git init -q b3; git -C b3 commit -qm mended --allow-empty"))
	if w.plain(t, "git -C b3 log --format=%s") != "mended" {
		t.Error(mended)
	}
}

// A repository that was made inside before claudebox was killed runs nothing until the next session has ended. Then it is
// the user's.
func TestARepositoryOfASessionThatWasKilled(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", identity)
	cmd := w.session(`git init -q n; until [ -L n/.git ]; do sleep 0.01; done; git -C n commit -qm made --allow-empty; git -C n config core.fsmonitor "touch $PWD/TAKEN; false"; touch done; sleep 600`)
	must.Do(t, cmd.Start())
	must.Appear(t, w.path("project/done"))
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	must.Await(t, "it runs no more", func() bool { return !strings.Contains(succeed(t, w.claudebox("instance", "list")), "in use") })
	w.plain(t, `! git -C n status; git status; [ ! -e TAKEN ]; mkdir .claudebox-KILLEDAMIDITALL7`) // or amid its start
	said := run(t, w.claudebox("shell", "--yes", "--", "git", "-C", "n", "commit", "-qm", "next", "--allow-empty"))
	if said.status != 0 || !strings.Contains(said.stderr, "held back  n/.git") || !strings.Contains(said.stderr, "n: it is yours now") {
		t.Error(said)
	}
	wantEqual(t, w.plain(t, `rm -f TAKEN; git -C n log --format=%s; git -C n status --porcelain; [ ! -e TAKEN ]; [ ! -e .claudebox-KILLEDAMIDITALL7 ]`), "next\nmade")
}

// With no room left where the project is, nothing is lost, nothing of the agent's is obeyed, and the next session ends it.
func TestARepositoryThatTheAgentMakesOnAFullDisk(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", identity)
	script := `session() { "$CLAUDEBOX_BIN" shell --yes -- bash -euc "$1"; }
		git init -q; git commit -qm first --allow-empty
		session 'git init -q sub; cd sub; git commit -qm one --allow-empty; git config core.fsmonitor "touch $PWD/../TAKEN; false"; mkdir ../.vscode; sleep 0.3; dd if=/dev/zero of=../fill bs=4k 2>/dev/null || :'
		df --output=avail . | tail -1; git -C sub status; git status; ls -d .vscode; [ ! -e TAKEN ] && echo nothing ran
		rm fill; session true; git -C sub log --format=%s; git -C sub fsck --strict; git -C sub status; git status; [ ! -e TAKEN ] && echo nothing ran`
	cmd := exec.Command("bwrap", "--die-with-parent", "--unshare-user", "--dev-bind", "/", "/", "--size", "3000000", "--tmpfs", w.project,
		"--chdir", w.project, "--", "bash", "-uc", script)
	cmd.Env = append(w.environment(), "CLAUDEBOX_BIN="+os.Getenv("CLAUDEBOX_BIN"))
	out, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(err.Error(), "exit status") {
		t.Fatal(err)
	}
	t.Log(string(out))
	if text := string(out); strings.Count(text, "nothing ran") != 2 || !strings.Contains(text, "\none\n") || !strings.Contains(text, ".vscode\n") {
		t.Error(text)
	}
}

// What tools obey unasked is held back also where claudebox's folder is a disk of its own, as by impermanence.
func TestANameIsHeldBackWhereClaudeboxsFolderIsADiskOfItsOwn(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".claudebox/.keep", "")
	script := `timeout 60 "$CLAUDEBOX_BIN" shell --yes -- bash -euc 'mkdir .idea; until readlink .idea; do sleep 0.1; done'; [ -d .idea ] && ls .git`
	cmd := exec.Command("bwrap", "--die-with-parent", "--unshare-user", "--dev-bind", "/", "/",
		"--size", "40000000", "--tmpfs", w.path(".claudebox"), "--chdir", w.project, "--", "bash", "-euc", script)
	cmd.Env = append(w.environment(), "CLAUDEBOX_BIN="+os.Getenv("CLAUDEBOX_BIN"))
	out, err := cmd.CombinedOutput()
	if text := string(out); err != nil || strings.Contains(text, "is not held back") || strings.Contains(text, "claudebox-held\n") {
		t.Errorf("%v: %s", err, text)
	}
}

// Each kind of repository that an agent makes is whole outside, and the next session goes on in it.
func TestRepositoriesOfEachKindThatTheAgentMakes(t *testing.T) {
	for _, place := range []string{"beside claudebox's own folder", "on another file system"} {
		t.Run(place, func(t *testing.T) {
			w := newWorld(t)
			w.repository(t)
			w.write(t, ".gitconfig", identity)
			if place == "on another file system" {
				memory, err := os.MkdirTemp("/dev/shm", "claudebox-")
				must.Do(t, err)
				t.Cleanup(func() { os.RemoveAll(memory) })
				w.plain(t, "cp -r . "+memory+"/p")
				w.project = memory + "/p"
			}
			w.plain(t, `git commit -qm two --allow-empty; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),link; git commit -qm link; mkdir link`)
			got := run(t, w.session(`git clone -q . plain; git clone -q --depth 1 file://$PWD shallow; git clone -q -s . borrowing; git init -q link; git -C link commit -qm x --allow-empty; mkdir -p new/deep; git clone -q . new/deep/er; cp -r plain copied; for i in $(seq 200); do [ $(readlink copied/.git) = $(readlink plain/.git) ] || break; sleep 0.05; done; git -C copied commit -qm copied --allow-empty`))
			if got.status != 0 {
				t.Fatal(got.stderr)
			}
			for _, dir := range []string{"plain", "copied", "shallow", "borrowing", "link", "new/deep/er"} {
				w.plain(t, "cd "+dir+"; git log --format=%s; git fsck --strict --no-dangling; [ -z \"$(git status --porcelain)\" ]; ! git config gc.auto")
				w.inside(t, "cd "+dir+"; git commit -qm next --allow-empty")
				if got := w.plain(t, "git -C "+dir+" log -1 --format=%s"); got != "next" {
					t.Errorf("%s: the next session's commit did not cross: %s", dir, got)
				}
			}
			if got := w.plain(t, "git -C plain log --format=%s | head -2; git -C copied log --format=%s | head -2"); got != "next\nlink\nnext\ncopied" {
				t.Errorf("a copy and what it was made of: %s", got)
			}
			if exists(w.project + "/.git/claudebox-held") {
				t.Error("a folder of claudebox's is left in the git folder")
			}
		})
	}
}

// What was committed before claudebox was killed is in the user's repository, or comes there with the next launch.
func TestACommitOfASessionThatWasKilledIsNotLost(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", identity)
	cmd := w.session(`echo b >b; git add b; git commit -qm kept; touch done; sleep 600`)
	must.Do(t, cmd.Start())
	must.Appear(t, w.path("project/done"))
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	w.plain(t, `git status; git commit -qm "the user's" --allow-empty`)
	if said := succeed(t, w.claudebox("git")); !strings.Contains(said, "`claudebox git drop main`") {
		t.Errorf("claudebox git says %s", said)
	}
	got := w.plain(t, `git log --format=%s --all; git fsck --strict --no-dangling; ls .git | grep lock || :`)
	if !strings.Contains(got, "kept") || !strings.Contains(got, "the user's") || strings.Contains(got, ".lock") {
		t.Errorf("the user has\n%s", got)
	}
}

// The user stages and commits all the time, and so does the agent, once each has a commit of its own on the branch. Git
// fails on neither side: claudebox holds no lock of git's while it hands over.
func TestBothSidesCommitAgainAndAgainAndGitNeverFails(t *testing.T) {
	const loop = `{ echo $i >$who$i; git add $who$i && git commit -qm $who$i; } 2>&1 || echo failed`
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", identity)
	session := beside(t, w.session(`git commit -qm a0 --allow-empty; touch begun; until [ -e apart ]; do sleep 0.02; done
		who=a; i=0; SECONDS=0; until [ $i = `+fmt.Sprint(trial.Count(50, 150))+` ] || [ $SECONDS -gt 60 ]; do i=$((i+1)); `+loop+`; done; echo $i >stop`))
	must.Appear(t, w.path("project/begun"))
	// The user's commit may meet the agent's: git refuses it then, see docs/workspace.md.
	said := w.plain(t, `until git commit -qm u0 --allow-empty 2>/dev/null; do :; done; until [ -n "$(git branch --list claudebox/main)" ]; do sleep 0.02; done; touch apart
		who=u; i=0; until [ -e stop ]; do i=$((i+1)); `+loop+`; sleep 0.2; done`)
	got := <-session
	if text := got.stdout + said; got.status != 0 || text != "" {
		t.Errorf("git failed %d times: status %d\n%s%s", strings.Count(text, "failed"), got.status, text, got.stderr)
	}
	w.plain(t, `[ $(git log --format=%s claudebox/main | grep -c a) = $(($(cat stop)+1)) ]; git fsck --strict --no-dangling`)
}

// The work of a day in each layout of a repository, by the agent; then the user has it.
func TestTheUserHasWhatTheAgentDidIn(t *testing.T) {
	for name, tc := range trial.Some(2, map[string]struct{ user, dir, agent, then, want string }{
		"a subfolder":       {"mkdir sub; touch sub/x; git add .; git commit -qm sub", "project/sub", "echo y >x; git commit -qam two", "git log --format=%s | head -1; git status --porcelain", "two"},
		"a linked worktree": {"git worktree add -q -b side ../side", "side", "echo y >y; git add y; git commit -qm two; git switch -qc other", "git log --format=%s other | head -1; git -C ../side branch --show-current; git -C ../side status --porcelain", "two\nother"},
		"a path with a line break": {
			"cp -r . $'../a\\nb:c'", "a\nb:c", "echo y >y; git add y; git commit -qm two", "cd $'../a\\nb:c'; git log --format=%s | head -1; git status --porcelain", "two",
		},
		"a nested repository": {"git init -q n; cd n; git commit -qm n --allow-empty", "project", "cd n; echo y >y; git add y; git commit -qm two; git config x.y z", "git -C n log --format=%s; git -C n config x.y || echo none", "two\nn\nnone"},
		"a submodule":         {"git init -q ../lib; git -C ../lib commit -qm l --allow-empty; git -c protocol.file.allow=always submodule -q add ../lib sm; git commit -qm sm", "project", "cd sm; git switch -qc work; echo y >y; git add y; git commit -qm two; cd ..; git commit -qam bump", "git log --format=%s | head -1; git -C sm log --format=%s work | head -1; git status --porcelain", "bump\ntwo"},
		"a submodule that was not checked out": {
			"git init -q -b main --bare ../lib.git; git clone -q ../lib.git ../l; git -C ../l commit -qm l --allow-empty; git -C ../l push -q origin HEAD:main; git -c protocol.file.allow=always submodule -q add $PWD/../lib.git sm; git commit -qm sm; cp -r ../lib.git lib.git; git submodule --quiet deinit -f sm; rm -rf .git/modules",
			"project", "git config submodule.sm.url $PWD/lib.git; git -c protocol.file.allow=always submodule -q update --init; git -C sm log --format=%s", "git -C sm log --format=%s; git submodule status | cut -c1; git status --porcelain", "l\n \n?? lib.git/",
		},
		"a remote to push to": {"git init -q --bare r.git; echo r.git >.git/info/exclude; git remote add origin $PWD/r.git", "project", "git push -q -u origin main; git switch -qc t; git commit -qm t --allow-empty; git push -q -u origin t", "git rev-parse --abbrev-ref main@{u} t@{u}; git -C r.git log --format=%s t | head -1", "origin/main\norigin/t\nt"},
		"no repository":       {"rm -rf .git", "project", "git init -q -b main; git add .; git commit -qm first", "git log --format=%s", "first"},
		"a worktree in it":    {"", "project", "git worktree add -q .claude/worktrees/w; cd .claude/worktrees/w; echo y >y; git add y; git commit -qm two", "git -C .claude/worktrees/w log --format=%s | head -1; git -C .claude/worktrees/w status --porcelain; git log --format=%s w | head -1", "two\ntwo"},
	}) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.repository(t)
			w.write(t, ".gitconfig", identity)
			w.plain(t, tc.user)
			main := w.project
			w.project = w.path(tc.dir)
			got := run(t, w.session(tc.agent))
			if got.status != 0 {
				t.Fatalf("inside: status %d, %s%s", got.status, got.stdout, got.stderr)
			}
			w.project = main
			if has := w.plain(t, tc.then); has != tc.want {
				t.Errorf("the user has\n%s\nwant\n%s\n%s", has, tc.want, got.stderr)
			}
			if again := run(t, w.session("git status --porcelain >/dev/null")); again.status != 0 {
				t.Errorf("the next session: %s", again.stderr)
			}
		})
	}
}

// An object of the user's and a program of git's has a second name in the project.
func TestAFileOfGitsIsWrittenByItsNameInTheProject(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	hook := filepath.Join(w.project, ".git/hooks/pre-commit")
	w.write(t, "project/.git/hooks/pre-commit", "#!/bin/sh\nexit 0\n")
	must.Do(t, os.Link(hook, w.path("project/tool")))
	run(t, w.session(`echo evil >>tool`))
	if strings.Contains(w.read(t, "project/.git/hooks/pre-commit"), "evil") {
		t.Error("it was written")
	}
}

// A session that begins beside one whose agent makes and removes what is held back starts all the same.
func TestASessionBeginsWhileAnotherOnesRepositoriesComeAndGo(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	cmd := w.session(`touch begun; while [ ! -e stop ]; do git init -q d; git init -q e/f; mkdir -p .vscode; rm -rf d e .vscode; done || :`)
	must.Do(t, cmd.Start())
	must.Appear(t, w.path("project/begun"))
	for n := range trial.Count(10, 30) {
		if got := run(t, w.session("true")); got.status != 0 {
			t.Errorf("launch %d: %s", n, got.stderr)
		}
	}
	w.write(t, "project/stop", "")
	_ = cmd.Wait()
}

// A clone of the project in a folder of the agent's own that outlives the session borrows the user's objects. It lost
// its HEAD at the session's end, as one that borrows from anywhere does.
func TestACloneOfTheProjectInTheAgentsOwnFolderStays(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", identity)
	w.inside(t, `p=$PWD; mkdir -p ~/.cache/cl; cd ~/.cache/cl; git clone -q $p c; git clone -qs $p s; git clone -q --bare $p b
		git clone -q $p evil; git -C evil config core.fsmonitor "touch $p/TAKEN; false"
		git clone -q $p other; mkdir /tmp/o; echo /tmp/o >>other/.git/objects/info/alternates; echo x >c/x; git -C c add x; git -C c commit -qm x`)
	const look = `for i in c s b; do git -C $i log --format=%s; git -C $i fsck --strict 2>&1; done; ls -d */.git/HEAD b/HEAD`
	const want = "x\nbegin\nbegin\nbegin\nb/HEAD\nc/.git/HEAD\ns/.git/HEAD"
	wantEqual(t, w.inside(t, `cd ~/.cache/cl; `+look), want+"\n")
	wantEqual(t, w.plain(t, `cd ~/.claudebox/instances/*/cache/cl; `+look), want)
}
