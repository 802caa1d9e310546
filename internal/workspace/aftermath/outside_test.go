package aftermath_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"claudebox/internal/workspace/aftermath"
)

// TestTheUsersEditorWritesThroughALink: what looks like a file of the project
// is one of the user's own.
func TestTheUsersEditorWritesThroughALink(t *testing.T) {
	w := newWorld(t)
	w.sh("echo mine >$HOME/rc; mkdir d; ln -s $HOME/rc old; ln -s $HOME/none dangling")
	time.Sleep(1100 * time.Millisecond) // what is a second older than a session counts as its own
	agent := `ln -s $HOME/rc notes.txt; ln -s ../../rc d/relative; ln -s $HOME/absent/deep to-be; ln -s d/../dangling chain; ln -s ../old d/again
		ln -s $HOME folder; ln -s folder/rc two; mkdir -p e/f; ln -s $HOME/rc e/f/deep; ln -s / root`
	harmless := `ln -s notes2 in; ln -s $HOME/p/d abs; ln -s $HOME/p/absent inside; ln -s loop loop; ln -s /nix/store/x-y/bin/z result; mkdir node_modules; ln -s $HOME/rc node_modules/x`
	want := []string{"new chain", "new d/again", "new d/relative", "new e/f/deep", "new folder", "new notes.txt", "new root", "new to-be", "new two"}
	s := w.begin()
	w.sh(agent + "\n" + harmless)
	s.Kill()
	reports := aftermath.Sweep(w.path(".claudebox"))
	if len(reports) != 1 {
		t.Fatalf("%+v", reports)
	}
	wantLines(t, reports[0], want...)
	if text := reports[0].Text(w.home, 0); !strings.Contains(text, "a link to "+w.path("rc")+", outside the project: your tools read and write there\n") ||
		!strings.Contains(text, w.path("absent/deep")) || !strings.Contains(text, w.path("none")) {
		t.Error(text)
	}
	time.Sleep(1100 * time.Millisecond)
	wantLines(t, w.session("touch x; mv d/relative d/moved; ln -sf $HOME/rc two"), "new d/moved", "new two")
}

func TestLinksThatTheAgentFloodsTheReportWithAreCounted(t *testing.T) {
	w := newWorld(t)
	r := w.session("for n in $(seq 100); do ln -s $HOME/$n a$n; done; echo x >Makefile")
	if len(r.Changes) != 22 || !strings.Contains(fmt.Sprint(r.Changes), "80 more links") || !strings.Contains(r.Text(w.home, 0), "Makefile") {
		t.Errorf("%+v", r.Changes)
	}
}

// A submodule that is a link has no .git of its own to be renamed: no name there
// is free, and the session would not end.
func TestASubmoduleThatIsALink(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; git commit -qm x --allow-empty")
	r := w.session(`git init -q b; git -C b commit -qm x --allow-empty; git -C b config core.fsmonitor "$EVIL"; ln -s b a; ln -s /nowhere/else c
		for d in a c; do git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),$d; done`)
	wantLines(t, r, "taken out b/.git/config", "new c")
	w.sh("git status; git -C a status")
	w.wantNotTaken()
}

// A repository that is harmless by now may be changed by a later session.
func TestALinkToAnAgentsOwnFoldersGoes(t *testing.T) {
	w := newWorld(t)
	w.sh("mkdir -p ../.claudebox/instances/x/cache/l; git init -q")
	s := w.begin()
	w.sh("ln -s ../.claudebox/instances/x/cache/l l")
	if r := s.End(); len(r.Changes) != 1 || r.Changes[0].Change != aftermath.TakenOut || r.Changes[0].Path != "l" {
		t.Errorf("got %+v", r)
	}
	if _, err := os.Lstat(w.path("p/l")); err == nil {
		t.Error("it stays")
	}
}
