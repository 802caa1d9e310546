//go:build lab

package claude_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"claudebox/checks/claude/script"
)

// ready is what Claude Code shows below its prompt when it asks nothing.
const ready = "bypass permissions on"

// questions are what a first start asks when nobody has answered before.
var questions = []string{
	"Choose the text style", "Let's get started", // onboarding
	"Is this a project you created or one you trust",     // trust
	"WARNING: Claude Code running in Bypass Permissions", // bypass
	"Do you want to use this API key",                    // an API key in the environment
}

// leave ends the session and wants a clean terminal.
func (c *terminal) leave(t *testing.T) {
	t.Helper()
	c.enter(t, "/exit")
	if status := c.end(t); status.ExitStatus() != 0 {
		t.Errorf("ended with %v; want 0", status)
	}
	if modes := c.modes(); len(modes) > 0 {
		t.Errorf("terminal modes left set: %q", modes)
	}
}

func TestFirstStartAsksNothing(t *testing.T) {
	w := newWorld(t, script.Say("PONG it is."))
	c := w.interact(t)
	c.until(t, ready, func(shown string) bool {
		for _, question := range questions {
			if strings.Contains(shown, question) {
				t.Fatalf("a question stands in the way:\n%s", indent(shown))
			}
		}
		return strings.Contains(shown, ready)
	})
	c.enter(t, "say pong")
	c.await(t, "PONG it is.")
	c.leave(t)
	if got := w.model.Requests()[0].Prompt(); !strings.HasSuffix(got, "say pong") {
		t.Errorf("the model was asked %q", got)
	}
}

func TestFirstStartInALinkedWorktreeAsksNothing(t *testing.T) {
	w := newWorld(t)
	w.git(t, "init", "-q")
	w.git(t, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first")
	w.git(t, "worktree", "add", "-q", "../linked")
	w.project = w.home + "/linked"
	c := w.interact(t)
	c.await(t, ready)
	c.leave(t)
}

func TestWidthFollowsTheTerminal(t *testing.T) {
	c := newWorld(t).interact(t)
	c.await(t, ready)
	for _, cols := range []int{60, 90} {
		c.resize(t, cols)
		rule := strings.Repeat("─", cols)
		c.until(t, "a rule as wide as the terminal", func(shown string) bool {
			return slices.Contains(strings.Split(shown, "\n"), rule)
		})
	}
	c.leave(t)
}

func TestInterruptStopsTheCommandAndKeepsTheSession(t *testing.T) {
	w := newWorld(t, script.Bash("echo started >started; sleep 1000"), script.Say("Next."))
	c := w.interact(t)
	c.await(t, ready)
	c.enter(t, "run it")
	c.await(t, "sleep 1000")
	c.press(t, "\x03")
	c.await(t, "Interrupted")
	c.enter(t, "and now")
	c.await(t, "Next.")
	c.leave(t)
}

func TestInterruptTwiceEndsTheSession(t *testing.T) {
	c := newWorld(t).interact(t)
	c.await(t, ready)
	c.press(t, "\x03")
	c.await(t, "Press Ctrl-C again to exit")
	c.press(t, "\x03")
	if status := c.end(t); status.ExitStatus() != 0 {
		t.Errorf("ended with %v; want 0", status)
	}
	if modes := c.modes(); len(modes) > 0 {
		t.Errorf("terminal modes left set: %q", modes)
	}
}

func TestTerminationReachesTheAgent(t *testing.T) {
	for signal, want := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		t.Run(signal.String(), func(t *testing.T) {
			c := newWorld(t).interact(t)
			c.await(t, ready)
			if err := c.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if status := c.end(t); status.ExitStatus() != want {
				t.Errorf("ended with %v; want %d", status, want)
			}
			if shown := c.String(); !strings.Contains(shown, "--resume") {
				t.Errorf("Claude Code did not end by itself:\n%s", indent(shown))
			}
			if modes := c.modes(); len(modes) > 0 {
				t.Errorf("terminal modes left set: %q", modes)
			}
		})
	}
}
