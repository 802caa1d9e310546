package handover

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// A machine that cannot make a box for a moment, or at all, says nothing about the agent's git folder: what only that
// has, as stashes on a branch, is there in the next session.
func TestABoxThatCannotBeMadeTakesNothingFromTheAgent(t *testing.T) {
	t.Parallel()
	for times, starts := range map[int]bool{1: true, 1000: false} {
		t.Run(fmt.Sprint(times), func(t *testing.T) {
			t.Parallel()
			w, tree := onBranch(t, "feat", "")
			w.agentIn(tree, "echo b >a; git stash push -q -m kept")
			w.end()
			w.user("git commit -q --allow-empty -m two") // else nothing is asked
			w.agentIn(tree, "git branch more")
			good, count := w.tools.Bwrap, filepath.Join(t.TempDir(), "count")
			w.tools.Bwrap = filepath.Join(filepath.Dir(count), "bwrap")
			script := fmt.Sprintf("#!%s\necho x >>%s\n[ $(wc -l <%[2]s) -gt %d ] || { echo 'bwrap: Creating new namespace failed: Resource temporarily unavailable' >&2; exit 1; }\nexec %s \"$@\"\n",
				w.tools.Bash, count, times, good)
			must.Program(t, w.tools.Bwrap, script)
			session, err := Begin(Request{Places: w.places, Tools: w.tools})
			if starts != (err == nil) {
				t.Errorf("begin: %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), "Resource temporarily unavailable") {
				t.Errorf("it says %v", err)
			}
			w.tools.Bwrap = good
			if err == nil {
				session.End(true)
			}
			w.begin()
			w.mount = tree
			if got := w.agent("git stash list --format=%gs"); got != "On feat: kept" {
				t.Errorf("the agent has the stashes %q", got)
			}
			if told := w.end(); len(told) > 0 {
				t.Errorf("told %q", told)
			}
		})
	}
}

// What could not be read at the end of a session is there at the next start: the agent goes on in its folder, and what it
// committed crosses.
func TestBranchesThatCouldNotBeReadAreThereAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin()
	w.agent("git commit -q --allow-empty -m two; git branch more; chmod 000 .git/refs/heads")
	if told := strings.Join(w.end(), ""); !strings.Contains(told, "has lost your branches") {
		t.Errorf("told %q", told)
	}
	must.Do(t, os.Chmod(w.places[0].Inner()+"/refs/heads", 0o700))
	w.begin()
	w.same(w.end())
	if got := w.user("git log --format=%s more"); got != "two\none" {
		t.Errorf("the user has %q", got)
	}
}
