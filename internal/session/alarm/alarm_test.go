package alarm

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// A1: an agent that uncovers files again and again filled the terminal.
func TestUncoveredFilesAreNamedOnceAndCounted(t *testing.T) {
	var said bytes.Buffer
	ended := 0
	a := &Alarm{To: &said, End: func() { ended++ }}
	for range 1000 {
		a.Uncovered("/p/.env", errors.New("moved"))
	}
	rest := a.Rest()
	if got := strings.Count(said.String(), "\n"); got != 2 || !slices.Equal(rest, []string{"the files that are named above were uncovered 999 times more"}) {
		t.Errorf("%d lines: %s\n%s", got, said.String(), rest)
	}
	for n := range 1000 {
		a.Uncovered(fmt.Sprintf("/p/%d", n), errors.New("moved"))
	}
	rest = a.Rest()
	if got := strings.Count(said.String(), "not covered"); got != Most || !slices.Equal(rest, []string{"981 more files were uncovered, all together 2000 times"}) {
		t.Errorf("%d named; %s", got, rest)
	}
	if ended != 2000 {
		t.Errorf("the session was ended %d times", ended)
	}
}

func TestFilesThatAreCoveredAgainAreToldAtTheEnd(t *testing.T) {
	var said bytes.Buffer
	a := &Alarm{To: &said, End: func() { t.Error("the session ends") }}
	for n := range 50 {
		a.Uncovered(fmt.Sprintf("/p/%d", n%25), nil)
	}
	rest := a.Rest()
	if len(rest) != Most+1 || !strings.Contains(rest[0], "/p/0 was replaced outside while the agent worked, 2 times") ||
		rest[Most] != "5 more files were replaced so" || said.Len() > 0 {
		t.Errorf("%q; meanwhile %q", rest, &said)
	}
}

func TestStrictEndsTheSessionForOneFile(t *testing.T) {
	var said bytes.Buffer
	ended := 0
	a := &Alarm{To: &said, End: func() { ended++ }, Strict: true}
	a.Uncovered("/p/a", nil)
	a.Uncovered("/p/b", nil)
	if a.Rest(); ended != 2 || strings.Count(said.String(), "was replaced outside; the session ends") != 1 {
		t.Errorf("ended %d times: %q", ended, &said)
	}
}

func TestAnythingUnguardedIsToldOnce(t *testing.T) {
	var said bytes.Buffer
	a := &Alarm{To: &said, End: func() {}}
	for range 3 {
		a.Unguarded(errors.New("no room"))
	}
	if rest := a.Rest(); len(rest) > 0 || strings.Count(said.String(), "cannot be held back any more: no room; the session ends") != 1 {
		t.Errorf("%q, then %q", &said, rest)
	}
}

// What was put aside is brought back by the command that is told.
func TestWhatWasPutAsideIsBroughtBack(t *testing.T) {
	var said bytes.Buffer
	at := must.Folder(t) + "/a b/.git"
	must.Write(t, at+"/hooks.claudebox-aside/pre-push", "x")
	must.Write(t, at+"/config.claudebox-aside", "old")
	must.Write(t, at+"/config", "new")
	a := &Alarm{To: &said}
	a.PutAside(at, []string{"hooks", "config"})
	a.Rest()
	_, command, _ := strings.Cut(said.String(), "`")
	command, _, _ = strings.Cut(command, "`")
	must.Do(t, exec.Command("bash", "-ec", command).Run())
	if must.Read(t, at+"/hooks/pre-push") != "x" || must.Read(t, at+"/config") != "old" {
		t.Error(said.String())
	}
}
