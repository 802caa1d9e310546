//go:build lab

package attacks_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
)

// author is who commits inside.
const author = `export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; `

// own makes a repository of the agent's own in a folder; partsOf gives it worktrees, in it and beside it, and a
// submodule, each of which is held back.
const (
	own     = author + `cd DIR && git init -q r && cd r && git commit -qm one --allow-empty; until [ -L .git ]; do sleep 0.01; done; cd /`
	partsOf = author + `cd DIR/r && git worktree add -q wt && git worktree add -q ../side
		git init -q ../src && git -C ../src commit -qm lib --allow-empty
		git -c protocol.file.allow=always submodule -q add $PWD/../src m
		git commit -qm m; for d in wt ../side m; do git -C $d commit -qm $d --allow-empty; done; cd /`
	trees = "r/wt r/m side"
)

// parts makes the repository of [own] in a folder, with its parts.
func (l *live) parts(at string) {
	l.w.t.Helper()
	l.sh(strings.ReplaceAll(own, "DIR", l.w.path(at)))
	l.addParts(at)
}

func (l *live) addParts(at string) {
	l.w.t.Helper()
	l.sh(strings.ReplaceAll(partsOf, "DIR", l.w.path(at)))
	for tree := range strings.FieldsSeq(trees) {
		l.until("[ -L "+l.w.path(at)+"/"+tree+"/.git ] && echo y", "y\n")
	}
}

// goOn has the agent commit in each part.
func (w *world) goOn(at string, l *live) {
	w.t.Helper()
	for tree := range strings.FieldsSeq(trees) {
		in := w.path(at) + "/" + tree
		if got := l.sh(author + "cd " + in + " && git rev-parse --show-toplevel && git commit -qm next --allow-empty; cd /"); got != in+"\n" {
			w.t.Errorf("inside, of %s git says %q", tree, got)
		}
	}
}

// wantParts wants the parts to be the user's, with the commits that sessions made there, and no commit in what lies
// above.
func (w *world) wantParts(at, said string, commits ...string) {
	w.t.Helper()
	for tree := range strings.FieldsSeq(trees) {
		in := at + "/" + tree
		first := map[string]string{"r/wt": "wt\none", "side": "../side\none", "r/m": "m\nlib"}[tree]
		want := w.path(in) + "\n" + strings.Join(append(commits, first), "\n") + "\n"
		if got := w.git(in, "rev-parse", "--show-toplevel").stdout + w.git(in, "log", "--format=%s").stdout; got != want {
			w.t.Errorf("%s: the user has %q, want %q\n%s", tree, got, want, said)
		}
		if status := w.git(in, "status", "--porcelain"); status.status != 0 || status.stdout != "" {
			w.t.Errorf("%s: %s", tree, status)
		}
	}
	w.wantAbove(at)
}

// wantAbove wants that no commit came to a repository above by surprise.
func (w *world) wantAbove(at string) {
	w.t.Helper()
	for above, want := range map[string]string{"project": "base\n", "project/sub": "base\n", at + "/r": "m\none\n"} {
		if !w.exists(above) {
			continue
		}
		if got := w.git(above, "log", "--format=%s").stdout; got != want {
			w.t.Errorf("%s has %q, want %q", above, got, want)
		}
	}
}

// belowToo makes a repository of the user's in a folder of the project.
func (w *world) belowToo() {
	w.t.Helper()
	w.folder("project/sub")
	w.git("project/sub", "init", "-q")
	w.git("project/sub", "commit", "-qm", "base", "--allow-empty")
}

func partsWorld(t *testing.T) *world {
	w := newWorld(t)
	w.write(".gitconfig", "[user]\n\tname = u\n\temail = u@x\n")
	w.git("project", "init", "-q")
	w.git("project", "commit", "-qm", "base", "--allow-empty")
	return w
}

// A repository of the agent's own has worktrees and submodules, and claudebox is killed. They were put aside, and what
// the next session committed there came to the repository above.
func TestTheNextCommitAfterAKillLandsInTheRepositoryAbove(t *testing.T) {
	for name, kill := range map[string]func(w *world, l *live, at string){
		"while it runs": func(_ *world, l *live, _ string) { l.kill() },
		"at its end": func(w *world, l *live, at string) {
			l.in.Close()
			for range 10_000 { // until the repository is the user's
				if text, _ := os.Readlink(w.path(at + "/r/.git")); text == "" && w.exists(at+"/r/.git") {
					break
				}
				time.Sleep(time.Millisecond)
			}
			l.kill()
		},
		"no": func(_ *world, l *live, _ string) { l.end() },
	} {
		for _, at := range []string{"project", "other"} { // which the session mounts read-write
			t.Run(name+", "+at, func(t *testing.T) {
				w := partsWorld(t)
				w.folder("other")
				session := func() *live { return w.begin("--mount-rw", w.path("other")) }
				l := session()
				l.parts(at)
				kill(w, l, at)
				l = session()
				w.goOn(at, l)
				w.wantParts(at, l.end(), "next")
			})
		}
	}
}

// A submodule of the agent's has one itself, which becomes the user's with it. It was said to be the agent's alone, too.
// A remark on one of several repositories says on which.
func TestASubmoduleInAnAgentsSubmoduleIsSaidToBeTheAgents(t *testing.T) {
	w := partsWorld(t)
	l := w.begin()
	l.parts("project")
	l.sh(author + "cd " + w.path("project") + `/r/m && git -c protocol.file.allow=always submodule -q add $PWD/../../src deep && git commit -qm deep
		cd .. && git commit -qam deep; cd /`)
	said := l.end()
	for in, want := range map[string]string{"r/m/deep": "lib\n", "r/m": "deep\nm\nlib\n", "r": "deep\nm\none\n"} {
		got := w.git("project/"+in, "rev-parse", "--show-toplevel").stdout + w.git("project/"+in, "log", "--format=%s").stdout
		if want = w.path("project/"+in) + "\n" + want; got != want {
			t.Errorf("%s: the user has %q, want %q", in, got, want)
		}
	}
	remote := "remote origin in " + w.path("project/r/m/deep") + ": it was added inside"
	if strings.Contains(said, "the agent's alone") || !strings.Contains(said, remote) {
		t.Errorf("it says %s", said)
	}
}

// Two sessions share a folder: one holds back a repository of the agent's, the other one what belongs to that.
func TestAWorktreeOfAnotherSessionsRepositoryIsPutAside(t *testing.T) {
	for _, second := range []string{"project", "project/sub"} {
		for _, lasts := range []string{"first", "second"} {
			t.Run(second+", the "+lasts+" one lasts", func(t *testing.T) {
				w := partsWorld(t)
				w.belowToo()
				first := w.begin()
				first.sh(strings.ReplaceAll(own, "DIR", w.path("project/sub")))
				other := w.in(second).begin()
				other.addParts("project/sub")
				ends, last := first, other
				if lasts == "first" {
					ends, last = other, first
				}
				said := ends.end()
				w.goOn("project/sub", last)
				w.wantParts("project/sub", said+last.end(), "next")
			})
		}
	}
}

// A second session begins in a folder below, in which the first one holds back a repository with its worktrees: what is
// held back moves to where both have it.
func TestAWorktreeIsLostToASessionThatBeginsInAFolderBelow(t *testing.T) {
	w := partsWorld(t)
	w.belowToo()
	first := w.begin()
	first.parts("project/sub")
	second := w.in("project/sub").begin()
	for _, l := range []*live{first, second} {
		for _, in := range []string{"r/wt", "side"} {
			if got := l.sh(author + "cd " + w.path("project/sub/"+in) + " && git rev-parse --show-toplevel; cd /"); got != w.path("project/sub/"+in)+"\n" {
				t.Errorf("of %s git says %q", in, got)
			}
		}
	}
	w.wantParts("project/sub", first.end()+second.end())
}

// A worktree's branch crosses at the end only, with a submodule that was made inside: the worktree was put aside, as its
// "commit did not cross". So was one without a commit. One in a folder of the agent's own is not gone.
func TestAWorktreeThatCrossesAtTheEndIsSaidToHaveNot(t *testing.T) {
	w := partsWorld(t)
	l := w.begin()
	said := l.sh(author + `git worktree add -q wt && cd wt && git init -q sub && git -C sub commit -qm lib --allow-empty && git add sub 2>/dev/null && git commit -qm sub
		git worktree add -q --orphan ../none; cd ..; git worktree add -q ~/.claude/own 2>&1; git -C ~/.claude/own commit -qm own --allow-empty`)
	said += l.end()
	for in, want := range map[string]string{"wt": "sub\nbase\n", "wt/sub": "lib\n", "none": "", "": "base\n"} {
		if top := w.git("project/"+in, "rev-parse", "--show-toplevel"); top.stdout != w.path("project/"+in)+"\n" {
			t.Errorf("of %q git says %s", in, top)
		}
		if got := w.git("project/"+in, "log", "--format=%s").stdout; got != want {
			t.Errorf("%s has %q, want %q", in, got, want)
		}
		if got := w.git("project/"+in, "status", "--porcelain", "-uno"); got.status != 0 || got.stdout != "" {
			t.Errorf("of %q: %s", in, got)
		}
	}
	if got := w.git("project", "log", "--format=%s", "own").stdout; got != "own\nbase\n" {
		t.Errorf("own has %q", got)
	}
	if strings.Contains(said, "did not cross") || strings.Contains(said, "gone") {
		t.Errorf("it says %s", said)
	}
}

// The user renames repositories of theirs while a session runs. They counted as the agent's: held back, then put aside.
func TestARepositoryThatTheUserRenamesIsTakenForTheAgents(t *testing.T) {
	for name, killed := range map[string]bool{"it ends": false, "it is killed": true} {
		t.Run(name, func(t *testing.T) {
			w := partsWorld(t)
			w.git("project", "init", "-q", "--bare", "b.git")
			w.git("project", "clone", "-q", ".", "n")
			for _, repository := range []string{"b.git", "n"} {
				w.git("project/"+repository, "config", "alias.mine", "version")
			}
			l := w.begin()
			l.watched()
			must.Do(t, os.Rename(w.path("project/b.git"), w.path("project/c.git")), os.Rename(w.path("project/n"), w.path("project/m")))
			for _, at := range []string{"x", "y/deep"} { // what comes later is held back, and so was what came before
				l.sh("git init -q " + at + "; until [ -L " + at + "/.git ]; do sleep 0.01; done")
			}
			l.sh("sleep 1.5") // what is no repository yet is looked at again
			for _, repository := range []string{"c.git", "m"} {
				if got := w.git("project/"+repository, "mine"); got.status != 0 {
					t.Errorf("while it runs, %s: %s", repository, got)
				}
			}
			said := ""
			if killed {
				l.kill()
				said = w.claudebox("shell", "--yes", "--", "true").stderr
			} else {
				said = l.end()
			}
			for _, repository := range []string{"c.git", "m"} {
				if got := w.git("project/"+repository, "mine"); got.status != 0 {
					t.Errorf("%s: %s\n%s", repository, got, said)
				}
			}
		})
	}
}

// In the moment in which a repository of the agent's is to come to its place the user makes one there, with settings of
// their own: it counted as the agent's, and was put aside.
func TestARepositoryThatTheUserMakesAtTheEndIsTakenForTheAgents(t *testing.T) {
	w := partsWorld(t)
	w.folder("mine")
	w.git("mine", "init", "-q")
	w.git("mine", "config", "alias.mine", "version")
	l := w.begin()
	l.sh("git init -q r; until [ -L r/.git ]; do sleep 0.01; done; cd r; for i in 1 2 3; do git init -q ../r$i; done")
	l.in.Close()
	came := false
	for range 1_000_000 { // until the place is free
		if os.Rename(w.path("mine/.git"), w.path("project/r/.git")) == nil {
			came = true
			break
		}
	}
	said := l.end()
	if !came {
		t.Skip("the place was free for no moment")
	}
	if got := w.git("project/r", "mine"); got.status != 0 {
		t.Errorf("%s\n%s", got, said)
	}
}

// Two sessions share a folder, and what one agent makes is held back once. It was told twice.
func TestWhatIsHeldBackIsToldByEachSessionThatSeesIt(t *testing.T) {
	w := partsWorld(t)
	first, second := w.begin(), w.begin()
	watching := exec.Command(os.Getenv("CLAUDEBOX_BIN"), "watch", "--json")
	var told bytes.Buffer
	watching.Dir, watching.Env, watching.Stdout = w.project, w.env, &told
	must.Do(t, watching.Start())
	const names = 20 // at once, of what is told
	first.sh(fmt.Sprintf("for i in $(seq %d); do git init -q r$i; done; for i in $(seq %[1]d); do until [ -L r$i/.git ]; do sleep 0.01; done; done", names))
	first.end()
	second.end()
	must.Do(t, watching.Wait())
	count := map[string]int{}
	for line := range strings.Lines(told.String()) {
		var e struct{ Event, What string }
		must.Do(t, json.Unmarshal([]byte(line), &e))
		if e.Event == "held" {
			count[e.What]++
		}
	}
	for i := range names {
		if at := w.path(fmt.Sprintf("project/r%d/.git", i+1)); count[at] != 1 {
			t.Errorf("%s is told %d times\n%s", at, count[at], told.String())
		}
	}
}

// A repository that cannot become the user's has worktrees and a submodule. Git outside stops there, and goes into no
// repository above. Each is named with a way back, which the user follows word for word.
func TestWhatBelongsToARepositoryThatCannotBecomeTheUsersIsLost(t *testing.T) {
	w := partsWorld(t)
	l := w.begin("--report-json", w.path("report.json"))
	l.sh("export GIT_DEFAULT_HASH=sha256")
	l.parts("project")
	said := l.end()
	back := map[string]string{}
	var report struct {
		Changes []struct{ Path, Change, Back string }
	}
	must.Do(t, json.Unmarshal([]byte(w.read("report.json")), &report))
	for _, c := range report.Changes {
		if c.Change == "held back" {
			back[c.Path] = c.Back
		}
	}
	for in := range strings.FieldsSeq(trees) {
		if got := w.git("project/"+in, "commit", "-qm", "up", "--allow-empty"); got.status == 0 {
			t.Errorf("%s: a commit went somewhere\n%s", in, said)
		}
	}
	w.git("project/r", "commit", "-qm", "up", "--allow-empty") // it is the project's, as long as the link is there
	w.git("project", "reset", "-q", "--hard", "HEAD~1")
	for _, at := range []string{"r/.git", "r/m/.git", "r/wt/.git", "side/.git"} {
		if got := w.run(nil, "bash", "-ec", back[at]); back[at] == "" || got.status != 0 {
			t.Errorf("%s: %q: %s\n%s", at, back[at], got, said)
		}
	}
	w.wantParts("project", said)
}
