//go:build lab

package sandbox_test

import (
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// way prints the fourth word of bwrap's command line, which tells how it was
// begun. The agent sees it: bwrap is process 1.
const way = "; tr '\\0' '\\n' </proc/1/cmdline | sed -n 4p"

const (
	withWords = "--\n"
	ahead     = "--args\n" // before its words were known
)

// again launches by a profile for the second time, when a bwrap is begun ahead.
// Nothing is kept of a profile that was written a moment ago.
func (w *world) again(t *testing.T, profile string) (first, second string) {
	t.Helper()
	launch := func() string { return succeed(t, w.claudebox("--yes", "--no-report", "--profile", profile)) }
	first = launch()
	time.Sleep(1100 * time.Millisecond)
	launch()
	return first, launch()
}

func TestABwrapBegunAheadMakesTheVerySandbox(t *testing.T) {
	w := newWorld(t)
	w.everyVariable()
	w.env["LC_ALL"] = "C"
	w.repository(t)
	script := strings.ReplaceAll("{ "+report+"; }"+way, "'", "''")
	profile := w.profile(t, "agent: {command: [bash, -uc, '"+script+"']}")
	first, second := w.again(t, profile)
	first, usual := strings.CutSuffix(comparable(first), withWords)
	second, early := strings.CutSuffix(comparable(second), ahead)
	if !usual || !early {
		t.Errorf("begun ahead: the first launch %v, a later one %v", !usual, early)
	}
	wantEqual(t, second, first)
}

func TestAChangedProjectIsNotEnteredByWhatWasBegunAhead(t *testing.T) {
	w := newWorld(t)
	profile := w.profile(t, "agent: {command: [bash, -uc, 'ls; test -w .env && echo not hidden"+strings.ReplaceAll(way, "'", "''")+"; true']}")
	if _, got := w.again(t, profile); got != ahead {
		t.Fatalf("an empty project: %q", got)
	}
	w.write(t, "project/.env", "TOKEN="+canary)
	launch := w.claudebox("--yes", "--no-report", "--profile", profile)
	if got := succeed(t, launch); got != withWords {
		t.Errorf("one more file to hide: %q", got)
	}
}

// bwrap is begun before the plan is read: by what was true the last time.
func TestAChangedProfileIsNotRunByWhatWasBegunAhead(t *testing.T) {
	agent := "agent: {command: [bash, -uc, 'true" + strings.ReplaceAll(way, "'", "''") + "']}"
	for name, changed := range map[string]struct {
		lines, flags []string
		want         string
	}{
		"another agent":       {lines: []string{"agent: {command: [echo, changed]}"}, want: "changed\n"},
		"another tier":        {lines: []string{agent, "network: {tier: none}"}, want: withWords},
		"another tier, asked": {lines: []string{agent}, flags: []string{"--network=none"}, want: withWords},
		"a mount more":        {lines: []string{agent, "mounts: [{host: ~/more, mode: ro}]"}, want: withWords},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(t, "more/file", "")
			profile := w.profile(t, agent)
			if _, got := w.again(t, profile); got != ahead {
				t.Fatalf("as it was: %q", got)
			}
			w.profile(t, changed.lines...)
			launch := w.claudebox(append([]string{"--yes", "--no-report", "--profile", profile}, changed.flags...)...)
			if got := succeed(t, launch); got != changed.want {
				t.Errorf("got %q, want %q", got, changed.want)
			}
		})
	}
}

// The user is asked before anything runs, whatever was begun by then.
func TestAProfileThatAsksByNowIsNotRunByWhatWasBegunAhead(t *testing.T) {
	w := newWorld(t)
	agent := "agent: {command: [bash, -uc, 'true" + strings.ReplaceAll(way, "'", "''") + "']}"
	profile := w.profile(t, agent, "confirm: never")
	launch := func() *exec.Cmd { return w.claudebox("--no-report", "--profile", profile) }
	succeed(t, launch())
	time.Sleep(1100 * time.Millisecond)
	succeed(t, launch())
	if got := succeed(t, launch()); got != ahead {
		t.Fatalf("as it was: %q", got)
	}
	w.profile(t, agent, "confirm: always")
	cmd := launch()
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "no terminal to ask on") {
		t.Errorf("%v, it said %q", err, out)
	}
	wantNobodyLeft(t, cmd, 0)
}

// Whoever kills claudebox, at whatever moment, ends what was begun ahead.
func TestAKilledClaudeboxLeavesNothingBegunBehind(t *testing.T) {
	w := newWorld(t)
	profile := w.profile(t, "agent: {command: [sleep, '1000']}", "confirm: never")
	launch := func() *exec.Cmd { return w.claudebox("--no-report", "--profile", profile) }
	killAfter(t, launch(), time.Second) // it has learnt what the next ones need
	for range 4 * kills(t) {
		cmd, delay := launch(), time.Duration(rand.Int64N(int64(15*time.Millisecond)))
		killAfter(t, cmd, delay)
		wantNobodyLeft(t, cmd, delay)
	}
}
