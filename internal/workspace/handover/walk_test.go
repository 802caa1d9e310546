package handover

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

var (
	walks = flag.Int("walks", 3, "how many random sessions")
	seed  = flag.Uint64("seed", 0, "of the first random session; 0: another one each time")
)

// deeds are what a person or an agent does in a repository. N stands for a new number each time. What git refuses at
// that moment is no fault.
var deeds = []string{
	"echo N >f; git add f; git commit -qm cN", "echo N >fN; git add fN; git commit -qm cN", "git commit -q --allow-empty -m cN",
	"git commit -q --amend -m cN --allow-empty", "git switch -qc bN", "git switch -q main", "git switch -q -", "git branch tN",
	"git tag vN", "echo N >g; git add g", "echo N >>f", "git add -A", "git reset -q", "git stash push -q", "git stash pop -q",
	"git rebase -q main", "git merge -q --no-edit main", "git rebase --abort", "git merge --abort", "git reset -q --soft user/main",
	"git branch -q -D t$((N-3))", "git mv f hN; git commit -qm cN", "git rm -q --cached g", "git gc -q --prune=now", "git pack-refs --all",
	"git checkout -q --detach; git commit -q --allow-empty -m cN; git branch dN; git switch -q main", "git cherry-pick main", "git notes add -f -m N",
}

// Both sides do anything while the session hands over. Whatever was committed on either side and still stands there is
// in the user's repository at the end, or is named as waiting; both are whole, and what both may agree on is the same.
func TestNoCommitIsLostInARandomSession(t *testing.T) {
	t.Parallel()
	for n := range *walks {
		first := *seed + uint64(n)
		if *seed == 0 {
			first = rand.Uint64()
		}
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(first, 1))
			w := newWorld(t)
			w.user("echo x >f; git add f; git commit -qm f; printf '*.aside\n' >.git/info/exclude")
			number := 0
			for range 2 {
				w.begin()
				w.session.Follow()
				for range 12 {
					number++
					deed := strings.ReplaceAll(deeds[rnd.IntN(len(deeds))], "N", fmt.Sprint(number))
					if rnd.IntN(2) == 0 {
						deed = strings.ReplaceAll(deed, " --prune=now", "") // what only an index named goes at once, see below
						t.Log("user: ", deed)
						w.user("{ " + deed + "; } >/dev/null 2>&1 || :")
					} else {
						t.Log("agent: ", deed)
						w.agent("{ " + deed + "; } >/dev/null 2>&1 || :")
					}
				}
				told := w.end()
				if text := w.user("git fsck --strict --no-dangling 2>&1 || { git ls-files --stage; git log --all --raw --no-abbrev --oneline; }"); text != "" {
					t.Errorf("outside, git fsck: %s", text)
				}
				if text := w.agent("git fsck --no-dangling 2>&1 | grep -v -e 'empty update token' || :"); text != "" {
					t.Errorf("inside, git fsck: %s", text)
				}
				waits := strings.Contains(strings.Join(told, "\n"), "under way")
				inside := strings.Fields(w.agent("git rev-list --branches --tags HEAD 2>/dev/null || git rev-list --branches --tags"))
				outside := w.user("git rev-list --all HEAD 2>/dev/null || git rev-list --all")
				for _, commit := range inside {
					if !strings.Contains(outside, commit) && !waits {
						t.Errorf("the user does not have %s; told %q", w.agent("git log -1 --format='%h %s %D' "+commit), told)
					}
				}
				for what, differs := range w.differences() {
					if !strings.Contains(strings.Join(told, "\n"), what) && !waits {
						t.Errorf("%s and is not told: %q", differs, told)
					}
				}
			}
		})
	}
}

// differences are the branches, tags, paths of the index, and HEAD that the two sides have otherwise, with both. Those
// beside (claudebox/, user/) are of one side only, and with another HEAD the index is another one.
func (w world) differences() map[string]string {
	const state = `git for-each-ref --format='%(refname:short) %(objectname)' refs/heads refs/tags | grep -v -e ^claudebox/ -e ^user/
		echo HEAD $(git symbolic-ref -q HEAD || git rev-parse -q --verify HEAD)`
	const commit, index = "git rev-parse -q --verify HEAD || :", `git ls-files --stage | awk '{ print $4, $2, $3, $1 }'`
	read := func(text string) map[string]string {
		of := map[string]string{}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			of[name] += " " + value
		}
		return of
	}
	script := state
	if w.agent(commit) == w.user(commit) && w.agent("git symbolic-ref -q HEAD || :") == w.user("git symbolic-ref -q HEAD || :") {
		script += "\n" + index
	}
	inside, outside := read(w.agent(script)), read(w.user(script))
	differ := map[string]string{}
	for name := range outside {
		if inside[name] != outside[name] {
			differ[name] = fmt.Sprintf("%s is%s inside and%s outside,", name, inside[name], outside[name])
		}
	}
	for name := range inside {
		if _, is := outside[name]; !is {
			differ[name] = fmt.Sprintf("%s is%s inside and nothing outside,", name, inside[name])
		}
	}
	return differ
}

// The user prunes a moment before what crosses is named by a branch, the index or a stash: it comes again.
func TestObjectsArePrunedAMomentBeforeTheyAreNamed(t *testing.T) {
	t.Parallel()
	for what, agent := range map[string]string{
		"a commit": "echo x >a; git commit -qam two", "a staged file": "echo x >new; git add new", "a stash": "echo x >a; git stash push -q",
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.begin()
			w.agent(agent)
			l := w.session.places[0]
			m, err := l.place.recall()
			must.Do(t, err)
			in, out, err := l.readBoth()
			must.Do(t, err)
			f, err := l.judge(m.Common, in, out, l.facts())
			must.Do(t, err)
			w.user("git prune --expire=now")
			want, _ := l.wanted(m.Common, in, out)
			if missing, err := l.outer().missing(want); len(missing) == 0 || err != nil {
				t.Fatalf("nothing was pruned: %v", err)
			}
			if err := l.whole(m.Common, in, out, f); err != nil {
				t.Error(err)
			}
			if missing, err := l.outer().missing(want); len(missing) > 0 || err != nil {
				t.Errorf("missing: %q, %v", missing, err)
			}
			w.end()
		})
	}
}

// The user stashes a moment after the list was read in which the agent has dropped a stash.
func TestTheUserStashesAMomentBeforeAStashIsDropped(t *testing.T) {
	t.Parallel()
	for what, tc := range map[string]struct{ before, agent, want string }{
		"the last one": {"echo b >a; git stash push -q -m one", "git stash drop -q", "mine"},
		"the newest":   {"echo b >a; git stash push -q -m one; echo c >a; git stash push -q -m two", "git stash drop -q", "mine one"},
		"another":      {"echo b >a; git stash push -q -m one; echo c >a; git stash push -q -m two", "git stash drop -q stash@{1}", "mine two"},
		"all":          {"echo b >a; git stash push -q -m one; echo c >a; git stash push -q -m two", "git stash clear", "mine"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.user(tc.before)
			w.begin()
			w.agent(tc.agent)
			l := w.session.places[0]
			m, err := l.place.recall()
			must.Do(t, err)
			in, out, err := l.readBoth()
			must.Do(t, err)
			w.user("echo d >a; git stash push -q -m mine")
			if _, err := l.cross(m, in, out, l.facts(), stamped{}); err != nil {
				t.Error(err)
			}
			w.end()
			if got := strings.ReplaceAll(w.user("git stash list --format=%gs | cut -d ' ' -f 3"), "\n", " "); got != tc.want {
				t.Errorf("the user has the stashes %q, want %q", got, tc.want)
			}
		})
	}
}
