package handover

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
)

// What the user's git does while theirs is copied to make the agent's own git folder: nothing of it is lost or taken
// back, and no branch appears but that of the session.
func TestWorkOfTheUsersWhileTheInnerFolderIsMade(t *testing.T) {
	t.Parallel()
	for _, does := range []string{
		"git pack-refs --all", "git commit -q --allow-empty -m two", "git branch -D spare", "git switch -q spare",
		"echo b >a; git stash -q", "git stash drop -q",
	} {
		for _, at := range []string{"refs", "refs/heads", "packed-refs"} {
			for _, branch := range []string{"", "feat"} {
				t.Run(strings.Join([]string{does, at, branch}, ","), func(t *testing.T) {
					t.Parallel()
					makeInnerWhile(t, does, at, branch)
				})
			}
		}
	}
}

// makeInnerWhile has the user do something just before a name of their git folder is copied.
func makeInnerWhile(t *testing.T, does, at, branch string) {
	w := newWorld(t)
	w.user("git branch spare; git pack-refs --all; git branch loose; git commit -q --allow-empty -m 1b; echo c >a; git stash -q")
	p, want := &w.places[0], ""
	if p.Branch = branch; branch != "" {
		p.Start = w.user("git rev-parse HEAD")
	}
	l := &live{place: *p, Request: Request{Tools: w.tools}, held: func(string) bool { return false }}
	l.hidden = func(path string) bool {
		if path == p.Outer+"/"+at && want == "" {
			w.user(does)
			want = w.user(look)
		}
		return false
	}
	w.session = &Session{places: []*live{l}, done: make(chan struct{})}
	must.Do(t, l.begin())
	w.sync()
	own := regexp.MustCompile(`.* refs/heads/feat\n`)
	if got := own.ReplaceAllString(w.user(look), ""); got != want {
		t.Errorf("the user had:\n%s\nand has:\n%s", want, got)
	}
	if branch == "" {
		stashes := w.user("git stash list --format=%gs")
		w.agent("echo d >a; git stash -q -m last")
		w.sync()
		if got, want := w.user("git stash list --format=%gs"), strings.TrimSpace("On "+w.user("git branch --show-current")+": last\n"+stashes); got != want {
			t.Errorf("the agent stashed once, and the user has the stashes %q, not %q", got, want)
		}
		w.same(w.end())
	}
}

// git waits at a pipe for who writes into it, and reads as much as there is.
func TestALaunchDoesNotWaitWhereGitWould(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"rm .git/HEAD; mkfifo .git/HEAD":                                     "/.git/HEAD is a pipe, where git would wait",
		"rm .git/config; mkfifo .git/config":                                 "/.git/config is a pipe, where git would wait",
		"rm .git/index; mkfifo .git/index":                                   "/.git/index is a pipe, where git would wait",
		"mkfifo .git/packed-refs":                                            "/.git/packed-refs is a pipe, where git would wait",
		"rm -f .git/logs/HEAD; mkfifo .git/logs/HEAD":                        "/.git/logs/HEAD is a pipe, where git would wait",
		"truncate -s 3G .git/HEAD":                                           "/.git/HEAD has more than 1 MiB",
		"truncate -s 3G .git/MERGE_HEAD":                                     "/.git/MERGE_HEAD has more than 1 MiB",
		"truncate -s 3G .git/packed-refs":                                    "/.git/packed-refs has more than 1024 MiB",
		"truncate -s 3G .git/info/large":                                     "/.git/info/large has more than 1024 MiB",
		"mkfifo .git/pipe; printf '[include]\n path = pipe\n' >>.git/config": "git did not answer within 4s",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.user(script)
			w.tools.Time = 4 * time.Second
			_, err := Begin(Request{Places: w.places, Tools: w.tools})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}

// Where references are in tables, nothing but a table of its own says where a worktree's HEAD was moved to.
func TestAHeadThatIsInATableIsSeen(t *testing.T) {
	root := must.Folder(t)
	table := root + "/worktrees/w/reftable"
	must.Do(t, os.MkdirAll(table, 0o755))
	p := Place{Outer: root, Trees: []Tree{{Rel: "worktrees/w"}}}
	before := p.stamps(root)
	must.Do(t, os.WriteFile(table+"/1.ref", nil, 0o644))
	if p.stamps(root) == before || !slices.Contains(p.folders(root), table) {
		t.Error("it crosses no earlier than at the end")
	}
}
