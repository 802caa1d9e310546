package handover

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
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
						w.user("{ " + deed + "; } >/dev/null 2>&1 || :")
					} else {
						w.agent("{ " + deed + "; } >/dev/null 2>&1 || :")
					}
				}
				told := w.end()
				if text := w.user("git fsck --strict --no-dangling 2>&1"); text != "" {
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
			}
		})
	}
}
