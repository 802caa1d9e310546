package handover

import (
	"errors"
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
)

// waits are what a place has waiting, one a line.
func (w *world) waits() string {
	w.Helper()
	list, err := Settle(Request{Places: w.places, Tools: w.tools})
	must.Do(w, err)
	var lines []string
	for _, s := range list {
		for _, wait := range s.Waits {
			lines = append(lines, wait.About+": "+wait.Text)
		}
	}
	return strings.Join(lines, "\n")
}

// forked is a world in which both sides have moved main, and the agent a branch of the user's that is not checked out.
func forked(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.user("git branch other; git branch quiet")
	w.begin()
	w.agent("echo i >i; git add i; git commit -qm inside; git branch -f other HEAD")
	w.user("git commit -qm outside --allow-empty; git branch -f other HEAD")
	w.end()
	return w
}

func TestWhatWaitsIsShownAfterTheSession(t *testing.T) {
	t.Parallel()
	w := forked(t)
	for range 2 { // it is not used up
		got := w.waits()
		expect.Contains(t, got, "main: it moved on both sides", "claudebox/main", "other: it moved on both sides", "claudebox/other")
	}
	w.user("rm i; git merge -q claudebox/main claudebox/other; git branch -f other HEAD")
	if got := w.waits(); got != "" {
		t.Errorf("after a merge waits\n%s", got)
	}
}

func TestTheUserTakesOrDropsWhatTheAgentDid(t *testing.T) {
	t.Parallel()
	w := forked(t)
	choose := func(branch string, choice Choice) (string, error) {
		s, err := Choose(Request{Places: w.places, Tools: w.tools}, branch, choice)
		var lines []string
		for _, wait := range s.Waits {
			lines = append(lines, wait.About+": "+wait.Text)
		}
		return strings.Join(lines, "\n"), err
	}
	if _, err := choose("quiet", Take); !errors.Is(err, ErrNoChoice) {
		t.Errorf("a branch that nobody moved: %v", err)
	}
	if got, err := choose("main", Take); err != nil || !strings.Contains(got, "main: you have it checked out: merge claudebox/main") {
		t.Errorf("a branch that is checked out: %s, %v", got, err)
	}
	inside := w.user("git rev-parse claudebox/other")
	if got, err := choose("other", Take); err != nil || strings.Contains(got, "other") {
		t.Errorf("taking: %s, %v", got, err)
	}
	if got := w.user("git rev-parse other; git branch --list 'claudebox/other'"); got != inside {
		t.Errorf("after taking: %s, want %s", got, inside)
	}
	if got, err := choose("main", Drop); err != nil || got != "" {
		t.Errorf("dropping: %s, %v", got, err)
	}
	if got := w.user("git log -1 --format=%s main; git branch --list 'claudebox/*'"); got != "outside" {
		t.Errorf("after dropping: %s", got)
	}
	if got := strings.TrimSpace(w.agent("git log -1 --format=%s; git fsck --strict --no-dangling")); got != "outside" {
		t.Errorf("inside: %s", got)
	}
	if got := w.waits(); got != "" {
		t.Errorf("then waits\n%s", got)
	}
}

// A checkout that the user has made since is not one that the agent took away.
func TestACheckoutThatCameLaterWaitsForTheNextSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin()
	w.end()
	w.user("git worktree add -q -b side side")
	w.places[0].Trees = append(w.places[0].Trees, Tree{"worktrees/side", w.project + "/side"})
	if got := w.waits(); got != w.project+"/side: the agent has this checkout from the next session on" {
		t.Errorf("got %s", got)
	}
	w.begin()
	w.end()
	if got := w.waits(); got != "" {
		t.Errorf("after that session waits %s", got)
	}
}

// A git folder that the agent broke does not keep the user from reading how the others stand.
func TestABrokenGitFolderOfTheAgentsIsAmongWhatWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin()
	w.end()
	w.agent("git commit -q --allow-empty -m x; rm .git/HEAD")
	list, err := Settle(Request{Places: w.places, Tools: w.tools})
	if err == nil || len(list) != 1 || len(list[0].Waits) != 1 || !strings.Contains(list[0].Waits[0].Text, "the next session sets it aside") {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := Choose(Request{Places: w.places, Tools: w.tools}, "main", Take); err == nil || errors.Is(err, ErrNoChoice) {
		t.Errorf("a choice: %v", err)
	}
}
