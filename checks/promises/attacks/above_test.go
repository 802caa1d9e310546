//go:build lab

package attacks_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
)

// An agent makes repositories while another session has the folder above, or one below. What is held back of them is
// a link: where it leads nowhere, git goes up, and commits in the user's repository above.
func TestAnAgentsRepositoryIsLostToASessionInAFolderAbove(t *testing.T) {
	for name, first := range map[string]string{"above first": "project", "below first": "project/sub"} {
		for _, ends := range []string{"project", "project/sub"} {
			t.Run(name+", "+ends+" ends first", func(t *testing.T) {
				w := newWorld(t)
				w.folder("project/sub")
				w.git("project", "init", "-q")
				w.git("project/sub", "init", "-q")
				w.git("project/sub", "commit", "-qm", "mine", "--allow-empty")
				s := map[string]*live{first: w.in(first).begin()}
				early := s[first].makes(w, "project/sub/early")
				other := map[string]string{"project": "project/sub", "project/sub": "project"}[first]
				s[other] = w.in(other).begin()
				made := []string{early}
				for at, l := range s {
					made = append(made, l.makes(w, "project/sub/of-"+strings.ReplaceAll(at, "/", "-")))
				}
				commitInEach(made, slices.Collect(maps.Values(s))...)
				if said := s[ends].end(); strings.Contains(said, "become yours") {
					t.Errorf("it was to be the user's while an agent can write there: %s", said)
				}
				left := map[string]string{"project": "project/sub", "project/sub": "project"}[ends]
				for _, at := range made {
					s[left].until("cd "+w.path(at)+" && git log --oneline | wc -l; cd /", "3\n")
				}
				w.wantCommits(made, s[left].end())
			})
		}
	}
}

// The same for a folder that another session mounts read-write, after a session there was killed.
func TestAnAgentsRepositoryIsLostToASessionThatMountsItsFolder(t *testing.T) {
	w := newWorld(t)
	w.folder("project/sub")
	w.git("project/sub", "init", "-q")
	w.git("project/sub", "commit", "-qm", "mine", "--allow-empty")
	killed := w.in("project/sub").begin()
	early := killed.makes(w, "project/sub/early")
	killed.kill()
	other := w.in("other").begin("--mount-rw", w.path("project"))
	own := w.in("project/sub").begin()
	late := own.makes(w, "project/sub/late")
	made := []string{early, late}
	commitInEach(made, other, own)
	w.wantCommits(made, own.end()+other.end())
}

// Where what is held back cannot lie at one path for both sessions, the second one is refused while the first one lives.
func TestAnAgentsRepositoryIsLostToASessionAboveOnAnotherFileSystem(t *testing.T) {
	w := newWorld(t)
	memory, err := os.MkdirTemp("/dev/shm", "claudebox-")
	must.Do(t, err)
	t.Cleanup(func() { os.RemoveAll(memory) })
	above, below := *w, *w
	above.project, below.project = memory+"/p", memory+"/p/sub"
	must.Do(t, os.MkdirAll(below.project, 0o700))
	for _, repository := range []string{above.project, below.project} {
		above.run(nil, "git", "-C", repository, "init", "-q")
	}
	first := above.begin()
	below.wantRefused(below.attack("true"), "end it first")
	first.end()
	if got := below.attack("echo there"); got.stdout != "there\n" {
		t.Error(got)
	}
}

// Claudebox is killed when a repository of the agent's has just become the user's: the next launch took that for one
// that the agent had made there.
func TestClaudeboxIsKilledWhenARepositoryHasBecomeTheUsers(t *testing.T) {
	w := newWorld(t)
	w.git("project", "init", "-q")
	l := w.begin()
	l.sh(`for i in 1 2 3 4 5 6 7 8; do git init -q r$i; cd r$i; git config user.name a; git config user.email a@b; git commit -qm one --allow-empty; git worktree add -q wt; cd ..; done`)
	l.in.Close()
	yours := func(i int) bool {
		text, _ := os.Readlink(w.path(fmt.Sprintf("project/r%d/.git", i)))
		return text == "" && w.exists(fmt.Sprintf("project/r%d/.git/worktrees/wt/HEAD", i))
	}
	for end := time.Now().Add(time.Minute); !slices.ContainsFunc(eight, yours) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	l.kill()
	var there []int
	for _, i := range eight {
		if yours(i) {
			there = append(there, i)
		}
	}
	got := w.attack("true")
	for _, i := range there {
		at := fmt.Sprintf("project/r%d", i)
		if log := w.git(at, "log", "--format=%s").stdout; log != "one\n" || w.exists(at+"/.git/HEAD.claudebox-aside") {
			t.Errorf("%s: %q\n%s", at, log, got.stderr)
		}
	}
}

var eight = []int{1, 2, 3, 4, 5, 6, 7, 8}

// commitInEach has each session commit in each repository of the agents'.
func commitInEach(made []string, sessions ...*live) {
	for _, at := range made {
		for _, l := range sessions {
			l.until("cd "+l.w.path(at)+" && git rev-parse --show-toplevel && git commit -qm more --allow-empty && cd / && echo y",
				l.w.path(at)+"\ny\n")
		}
	}
}

// wantCommits wants the commits of [live.makes] and [commitInEach] of two sessions in each repository, and none in the
// user's above. said is what claudebox said at the end.
func (w *world) wantCommits(made []string, said string) {
	w.t.Helper()
	for _, at := range made {
		if got := w.git(at, "log", "--oneline").stdout; strings.Count(got, "\n") != 3 {
			w.t.Errorf("%s: %q\n%s", at, got, said)
		}
	}
	if got := w.git("project/sub", "log", "--oneline", "--all").stdout; strings.Count(got, "\n") != 1 {
		w.t.Errorf("the repository above has %q", got)
	}
	w.wantNotTaken()
}

// makes makes a repository that gives orders, waits until it is held back, and returns where it is.
func (l *live) makes(w *world, at string) string {
	w.t.Helper()
	l.sh("git init -q " + w.path(at) + "; cd " + w.path(at) + "; git config user.name a; git config user.email a@b; " +
		"git commit -qm one --allow-empty; git config alias.x '!" + w.orders() + "'; cd /")
	for range 400 {
		if text, _ := os.Readlink(w.path(at + "/.git")); text != "" {
			w.git(at, "x")
			return at
		}
		time.Sleep(20 * time.Millisecond)
	}
	w.t.Errorf("%s is not held back", at)
	return at
}
