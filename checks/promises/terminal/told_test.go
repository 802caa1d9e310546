//go:build lab

package terminal_test

import (
	"os"
	"strings"
	"testing"
)

// What a session left is told by the next launch, if the window was closed before anybody could read it.
func TestWhatAClosedTerminalWasToldIsToldByTheNextLaunch(t *testing.T) {
	w := newWorld(t)
	// The agent may end before the window is gone, or because it is: claudebox ends after it in both cases.
	w.profile(t, "probe", `agent: {command: [bash, -c, "touch .envrc; echo ready-$((6*7)); while :; do sleep 0.1; done", `+w.home+"]}")
	c := on(t, w.claudebox("-y"))
	c.await(t, "ready-42")
	c.close()
	if got := c.end(t); got != 129 {
		t.Errorf("status %d", got)
	}
	w.profile(t, "finish", `agent: {command: ["true"]}`)
	launch := func() outcome { return run(t, w.command(os.Getenv("CLAUDEBOX_BIN"), "-P", w.file("finish"), "-y")) }
	got := launch()
	if !strings.Contains(got.stderr, "did not finish its report") || !strings.Contains(got.stderr, ".envrc") {
		t.Errorf("status %d\n%s", got.status, got.stderr)
	}
	if got := launch(); got.status != 0 || strings.Contains(got.stderr, ".envrc") {
		t.Errorf("it is told again: status %d\n%s", got.status, got.stderr)
	}
}
