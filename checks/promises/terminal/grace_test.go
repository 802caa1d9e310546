//go:build lab

package terminal_test

import (
	"syscall"
	"testing"

	"claudebox/checks/kit/trial"
)

// A6: an agent that ignores what asks it to end, and has started others that do,
// in sessions of their own.
func TestAnAgentThatIgnoresTheEndIsEnded(t *testing.T) {
	const stubborn = `trap "" HUP TERM INT QUIT; setsid sh -c "trap \"\" HUP TERM; while :; do sleep 1; done" & while :; do sleep 1; done`
	for name, tc := range map[string]struct {
		end    func(c *tty)
		status int
	}{
		"TERM":                   {func(c *tty) { c.cmd.Process.Signal(syscall.SIGTERM) }, 143},
		"HUP":                    {func(c *tty) { c.cmd.Process.Signal(syscall.SIGHUP) }, 129},
		"the terminal is closed": {func(c *tty) { c.close() }, 129},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.profile(t, "probe", "agent: {command: [bash, -c, '"+stubborn+"', "+w.home+"]}")
			c := on(t, w.claudebox("-y"))
			w.awaitSleeper(t)
			tc.end(c)
			c.cmd.Wait()
			if got := trial.Status(c.cmd.ProcessState); got != tc.status {
				t.Errorf("status %d, want %d", got, tc.status)
			}
			w.awaitGone(t)
		})
	}
}

// An agent that ends by itself in time has the last word on the status.
func TestAnAgentThatEndsWhenAskedIsNotKilled(t *testing.T) {
	w := newWorld(t)
	w.profile(t, "probe", `agent: {command: [bash, -c, "trap \"sleep 1; exit 7\" TERM; echo ready-$((6*7)); while :; do sleep 0.1; done", `+w.home+"]}")
	c := on(t, w.claudebox("-y"))
	c.await(t, "ready-42") // bash runs before its trap is set
	c.cmd.Process.Signal(syscall.SIGTERM)
	c.cmd.Wait()
	if got := trial.Status(c.cmd.ProcessState); got != 7 {
		t.Errorf("status %d", got)
	}
}
