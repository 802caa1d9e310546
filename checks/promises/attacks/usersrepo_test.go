//go:build lab

package attacks_test

import (
	"fmt"
	"strings"
	"testing"
)

// The agent has the git folder of the user's clone open before that is covered, and writes there by what it has open.
//
// Promise: nothing planted for your git.
func TestTheAgentKeepsTheGitFolderOfTheUsersCloneOpen(t *testing.T) {
	const clones = 10
	w := newWorld(t)
	w.git("", "init", "-q", "from")
	w.git("from", "commit", "-q", "--allow-empty", "-m", "x")
	l := w.begin()
	l.sh(fmt.Sprintf(`top=$PWD; for n in $(seq %d); do (
	until cd "$top/clone-$n/.git" 2>/dev/null; do [ ! -e "$top/go" ] || exit; done
	until [ -e "$top/go" ]; do sleep 0.05; done
	printf '[core]\n\tfsmonitor = "%s"\n' >>config && echo "$n" >>"$top/written"
) & done 2>/dev/null`, clones, w.orders()))
	for n := range clones {
		w.git("project", "clone", "-q", w.path("from"), fmt.Sprint("clone-", n+1))
	}
	l.sh("touch go; wait; rm go")
	said := strings.Join(strings.Fields(l.end()), " ")
	if !w.exists("project/written") {
		t.Fatalf("the agent was never in time: %s", said)
	}
	for n := range strings.FieldsSeq(w.read("project/written")) {
		w.git("project/clone-"+n, "status")
		out, adopted := "taken out clone-"+n+"/.git/", "clone-"+n+": it is yours now; inside only: core.fsmonitor"
		if !strings.Contains(said, out) && !strings.Contains(said, adopted) { // one that was held back in time is adopted
			t.Errorf("clone-%s is not told: %s", n, said)
		}
	}
	w.wantNotTaken()
}
