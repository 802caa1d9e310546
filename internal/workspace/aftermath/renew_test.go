package aftermath_test

import (
	"os"
	"strings"
	"testing"
	"time"

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

// An agent forges the cache of commits: the user's next commit would take along what it stages, unseen.
func TestAForgedCommitGraphIsDropped(t *testing.T) {
	const agent = `old=$(git rev-parse HEAD^{tree}); echo evil >d/a; git add d/a; new=$(git write-tree); WRITE
python3 - $old $new $GRAPH <<'X'
import sys, hashlib, os
graph = open(sys.argv[3], "rb").read()[:-20]
assert bytes.fromhex(sys.argv[1]) in graph
graph = graph.replace(bytes.fromhex(sys.argv[1]), bytes.fromhex(sys.argv[2]))
os.chmod(sys.argv[3], 0o644)
open(sys.argv[3], "wb").write(graph + hashlib.sha1(graph).digest())
X
`
	const whole, chain = "git commit-graph write --reachable", "git commit-graph write --reachable --split"
	for name, tc := range map[string]struct{ user, write, graph string }{
		"a new one":       {"true", whole, ".git/objects/info/commit-graph"},
		"one of a chain":  {"true", chain, ".git/objects/info/commit-graphs/*.graph"},
		"that of before":  {whole, "true", ".git/objects/info/commit-graph"},
		"chain of before": {chain, "true", ".git/objects/info/commit-graphs/*.graph"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh("git init -q; mkdir d; echo x >d/a; echo x >b; git add .; git commit -qm w; git commit -qm x --allow-empty; " + tc.user)
			time.Sleep(1100 * time.Millisecond) // what is a second older than a session counts as its own
			w.session(strings.NewReplacer("WRITE", tc.write, "$GRAPH", tc.graph).Replace(agent))
			if out := w.sh("git status --short"); out != "M  d/a\n" {
				t.Errorf("git shows %q", out)
			}
			if out := w.sh("echo y >b; git commit -qam y; git show --format= --name-only"); out != "b\nd/a\n" {
				t.Errorf("the commit takes along %q", out)
			}
		})
	}
}

// git writes its caches anew when it packs: nobody is to hear of that, and those of before stay.
func TestCachesOfCommitsAreDroppedInSilence(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; git commit -qm x --allow-empty; git init -q q; git -C q commit -qm x --allow-empty; git -C q commit-graph write --reachable")
	time.Sleep(1100 * time.Millisecond) // what is a second older than a session counts as its own
	r := w.session(`git -C q commit -qm y --allow-empty; for d in . made; do test -d $d || git init -q $d; git -C $d commit -qm y --allow-empty
		git -C $d repack -adq; git -C $d multi-pack-index write --bitmap; git -C $d commit-graph write --reachable; done; git clone -q --bare . bare; git -C bare commit-graph write --reachable`)
	if got := lines(r); len(got) > 0 {
		t.Errorf("told: %q", got)
	}
	out := w.sh(`for d in . made bare; do git -C $d fsck 2>&1 && ! find $d -name 'multi-pack-index*' | grep .; done
		ls -d .git/objects/info/commit-graph q/.git/objects/info/commit-graph 2>/dev/null`)
	if out != "q/.git/objects/info/commit-graph\n" {
		t.Errorf("there is\n%s", out)
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
