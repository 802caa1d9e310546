package aftermath_test

import (
	"os"
	"strings"
	"testing"

	"claudebox/internal/workspace/aftermath"
)

// An agent forges the cache of trees in the index: the user's next commit would take a tree along that nobody sees.
func TestAForgedIndexIsRenewed(t *testing.T) {
	const agent = `t=$(printf "100755 blob $(echo evil | git hash-object -w --stdin)\ta\n" | git mktree); python3 - $(git rev-parse HEAD:d) $t "$(git rev-parse --git-path index)" <<'X'
import sys, hashlib
index = open(sys.argv[3], "rb").read()[:-20]
assert bytes.fromhex(sys.argv[1]) in index
index = index.replace(bytes.fromhex(sys.argv[1]), bytes.fromhex(sys.argv[2]))
open(sys.argv[3], "wb").write(index + hashlib.sha1(index).digest())
X
`
	for name, end := range map[string]func(w world){
		"by the session": func(w world) {
			if r := w.session(agent); !r.Silent() {
				t.Errorf("it is told: %+v", r)
			}
		},
		"by the launch after it": func(w world) {
			s := w.begin()
			w.sh(agent)
			s.Kill()
			for _, r := range aftermath.Sweep(w.path(".claudebox")) {
				r.Told(true)
			}
		},
		"where the common folder is another": func(w world) {
			w.sh("mkdir ../q; mv .git ../q; cd ../q; git reset -q --hard; rm -r ../p/*; git worktree add -q -b w ../p; cd ../p; touch -d '1 hour ago' d/a b; git status; git commit -qm y --allow-empty")
			w.session(agent)
		},
	} {
		w := newWorld(t)
		w.sh("git init -q; mkdir d; echo x >d/a; echo x >b; touch -d '1 hour ago' d/a b; git add .; git commit -qm x")
		end(w)
		if out := w.sh("echo y >b; git commit -qam y; git show --format= --name-only"); out != "b\n" {
			t.Errorf("%s: the commit takes along %q", name, out)
		}
	}
}

// An index that no session changed is not written to.
func TestAnIndexThatNobodyChangedIsLeft(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; echo x >b; git add .; git commit -qm x")
	was, err := os.Stat(w.path("p/.git/index"))
	must(t, err)
	w.session("echo y >b")
	now, err := os.Stat(w.path("p/.git/index"))
	must(t, err)
	if !os.SameFile(was, now) || !was.ModTime().Equal(now.ModTime()) {
		t.Error("it is another")
	}
}

// An agent commits another hook than the file that it leaves there: the next checkout writes it.
func TestAnotherContentInTheIndexIsTold(t *testing.T) {
	const elsewhere = `b=$(echo evil | git hash-object -w --stdin); git update-index --cacheinfo 100755,$b,`
	for name, tc := range map[string]struct{ agent, want string }{
		"of a hook":              {elsewhere + "gh/x; git commit -qm y", "staged gh/x"},
		"of what a tool runs":    {elsewhere + ".envrc", "staged .envrc"},
		"of any file":            {elsewhere + "b", ""},
		"of a hook, in the file": {"echo true >gh/x; git commit -qam y", "changed gh"},
		"of none":                {"echo y >b; git commit -qam y", ""},
	} {
		w := newWorld(t)
		w.sh(repository + "good gh/x; echo x >.envrc; echo x >b; git add .; git commit -qm y; git config core.hooksPath gh")
		if got := strings.Join(lines(w.session(tc.agent)), " "); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
