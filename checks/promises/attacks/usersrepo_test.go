//go:build lab

package attacks_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// clones is how many times the user clones: an agent may come too late once.
const clones = 3

// keepOpen has the agent enter the git folder of each clone as soon as it is there. It tells when there is nothing in
// it any more, and writes its orders into the settings there when it is told to.
func (l *live) keepOpen() {
	l.w.t.Helper()
	l.sh(fmt.Sprintf(`top=$PWD; for n in $(seq %d); do (
	until cd "$top/clone-$n/.git" 2>/dev/null; do [ ! -e "$top/go" ] || exit; done
	echo x >"$top/entered-$n"
	until [ -e HEAD ]; do [ ! -e "$top/go" ] || exit; done
	until [ -e "$top/go" ]; do [ -e HEAD ] || echo x >"$top/gone-$n"; sleep 0.05; done
	printf '[core]\n\tfsmonitor = "%s"\n' >>config && echo "$n" >>"$top/written"
) & done 2>/dev/null`, clones, l.w.orders()))
}

// clone has the user clone, so that it takes half a second: claudebox sees who does it.
func (w *world) clone(to string) {
	w.t.Helper()
	slow := "--upload-pack=sleep 0.5; git-upload-pack"
	if got := w.git("project", "clone", "-q", slow, "file://"+w.path("from"), to); got.status != 0 {
		w.t.Fatalf("no clone: %s", got.stderr)
	}
}

// The agent has the git folder of the user's clone open before that is covered, and writes there by what it has open,
// while the session runs.
//
// Promise: nothing planted for your git.
func TestTheAgentKeepsTheGitFolderOfTheUsersCloneOpen(t *testing.T) {
	w := newWorld(t)
	w.git("", "init", "-q", "from")
	w.git("from", "commit", "-q", "--allow-empty", "-m", "x")
	l := w.begin()
	l.keepOpen()
	for n := range clones {
		w.clone(fmt.Sprint("clone-", n+1))
	}
	for n := range clones {
		must.Await(t, "another git folder", func() bool { return w.exists(fmt.Sprint("project/gone-", n+1)) })
	}
	l.sh("touch go; wait; rm go")
	for n := range clones {
		clone := fmt.Sprint("project/clone-", n+1)
		if got := w.git(clone, "status"); got.status != 0 {
			t.Errorf("your git: %s", got.stderr)
		}
		must.Program(t, w.path(clone+"/.git/hooks/pre-push"), "#!/bin/sh\n")
	}
	w.wantNotTaken()
	said := strings.Join(strings.Fields(l.end()), " ")
	for n := range clones {
		clone := fmt.Sprint("project/clone-", n+1)
		w.git(clone, "status")
		if !w.exists(clone+"/.git/hooks/pre-push") || strings.Contains(said, fmt.Sprintf("taken out clone-%d", n+1)) {
			t.Errorf("your own hook in %s did not stay: %s", clone, said)
		}
	}
	w.wantNotTaken()
	if left, _ := os.ReadDir(w.path(".claudebox/renewed")); len(left) > 0 {
		t.Errorf("there is left: %v", left)
	}
}

// Where another session has the folder, the user's clone keeps its files; what is written there is found at the end.
//
// Promise: nothing planted for your git.
func TestTheAgentKeepsTheGitFolderOfTheUsersCloneOpenBesideAnotherSession(t *testing.T) {
	w := newWorld(t)
	w.git("", "init", "-q", "from")
	w.git("from", "commit", "-q", "--allow-empty", "-m", "x")
	other := w.begin()
	l := w.begin()
	l.keepOpen()
	for n := range clones {
		w.clone(fmt.Sprint("clone-", n+1))
	}
	l.sh("touch go; wait; rm go")
	said := strings.Join(strings.Fields(l.end()+other.end()), " ")
	if !w.exists("project/written") {
		t.Fatalf("the agent was never in time: %s", said)
	}
	if !strings.Contains(said, "until the session ends, an agent that was faster") {
		t.Errorf("that is not told: %s", said)
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
