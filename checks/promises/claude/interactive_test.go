//go:build lab

package claude_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/script"
	"claudebox/checks/kit/window"
)

// questions are what a first start asks when nobody has answered before.
var questions = []string{
	"Choose the text style", "Let's get started", // onboarding
	"Is this a project you created or one you trust",     // trust
	"WARNING: Claude Code running in Bypass Permissions", // bypass
	"Do you want to use this API key",                    // an API key in the environment
}

// A first start asks nothing, and its terminal is the user's: a width that changes, and an interrupt that stops a command and
// keeps the session.
func TestFirstStartAsksNothing(t *testing.T) {
	w := newWorld(t, script.Say("PONG it is."))
	c := w.interact(t)
	c.Until(t, window.Ready, func(shown string) bool {
		for _, question := range questions {
			if strings.Contains(shown, question) {
				t.Fatalf("a question stands in the way:\n%s", indent(shown))
			}
		}
		return strings.Contains(shown, window.Ready)
	})
	c.Enter(t, "say pong")
	c.Await(t, "PONG it is.")
	if got := w.model.Requests()[0].Prompt(); !strings.HasSuffix(got, "say pong") {
		t.Errorf("the model was asked %q", got)
	}
	for _, cols := range []int{60, 90} {
		c.Resize(t, cols)
		rule := strings.Repeat("─", cols)
		c.Until(t, "a rule as wide as the terminal", func(shown string) bool {
			return slices.Contains(strings.Split(shown, "\n"), rule)
		})
	}
	w.model.Add(script.Bash("echo started >started; sleep 1000"), script.Say("Next."))
	c.Enter(t, "run it")
	c.Await(t, "sleep 1000")
	c.Press(t, "\x03")
	c.Await(t, "Interrupted")
	c.Enter(t, "and now")
	c.Await(t, "Next.")
	c.Leave(t)
}

func TestFirstStartInALinkedWorktreeWithoutNetworkAsksNothing(t *testing.T) {
	w := newWorld(t)
	w.network = "none"
	w.git(t, "init", "-q")
	w.git(t, "commit", "-q", "--allow-empty", "-m", "first")
	w.git(t, "worktree", "add", "-q", "../linked")
	w.project = w.home + "/linked"
	c := w.interact(t)
	c.Await(t, window.Ready)
	c.Interrupt(t) // twice
	c.Ended(t, 0)
}

func TestTwoSessionsShareAProject(t *testing.T) {
	w := newWorld(t, script.Say("From the second."), script.Say("From the first."))
	c := w.interact(t)
	c.Await(t, window.Ready)
	w.print(t).succeed(t, "From the second.")
	c.Enter(t, "still there?")
	c.Await(t, "From the first.")
	c.Leave(t)
}

// Claude Code does not ask a terminal what it can: it knows some by their names. In others Shift+Enter sends what was typed.
func TestShiftAndEnterIsAKeyOfItsOwnInATerminalThatSendsIt(t *testing.T) {
	w := newWorld(t)
	w.env["TERM"], w.env["TERM_PROGRAM"] = "xterm-256color", "WezTerm"
	c := w.interact(t)
	c.Until(t, "a question for keys of their own (>u)", func(string) bool { return slices.Contains(c.Modes(), ">u") })
	c.Await(t, window.Ready)
	c.Leave(t)
	if modes := c.Modes(); len(modes) > 0 {
		t.Errorf("it leaves %q", modes)
	}
}

func TestTerminationReachesTheAgent(t *testing.T) {
	c := newWorld(t).interact(t)
	c.Await(t, window.Ready)
	if c.Title() == "" {
		t.Fatal("Claude Code has set no title: there is nothing to take back")
	}
	must.Do(t, c.Process().Signal(syscall.SIGTERM))
	c.Ended(t, 143)
	if title := c.Title(); title != "" {
		t.Errorf("Claude Code did not take back its title, %q: it was not asked to end, but killed", title)
	}
}

func TestTerminalIsRestoredWhenTheAgentIsKilled(t *testing.T) {
	c := newWorld(t).interact(t)
	c.Await(t, window.Ready)
	if len(c.Modes()) == 0 {
		t.Fatal("Claude Code has set no modes: there is nothing to restore")
	}
	must.Do(t, syscall.Kill(descendant(t, c.Process().Pid, "claude"), syscall.SIGKILL))
	c.Ended(t, 137)
}

// descendant is the process with this name, or with it and ".exe" as npm calls
// Claude Code's, among a process's children and theirs.
func descendant(t *testing.T, pid int, name string) int {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	must.Do(t, err)
	for _, list := range lists {
		children, _ := os.ReadFile(list) // a thread may have ended
		for _, field := range strings.Fields(string(children)) {
			child, err := strconv.Atoi(field)
			must.Do(t, err)
			comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", child))
			if strings.TrimSuffix(strings.TrimSpace(string(comm)), ".exe") == name {
				return child
			}
			if found := descendant(t, child, name); found > 0 {
				return found
			}
		}
	}
	return 0
}

func TestSuspendedSessionComesBack(t *testing.T) {
	w := newWorld(t)
	claudebox := w.command(t)
	shell := exec.CommandContext(t.Context(), "bash", "--norc", "--noprofile", "--noediting", "-i")
	shell.Dir, shell.Env = claudebox.Dir, append(claudebox.Env, `PS1=shell \#> `)
	c := window.Open(t, shell)
	c.Await(t, "shell 1>")
	c.Press(t, strings.Join(claudebox.Args, " ")+"\r")
	c.Await(t, window.Ready)
	c.Press(t, "\x1a")
	c.Await(t, "Claude Code is suspended")
	c.Await(t, "Stopped")
	if modes := c.Modes(); len(modes) > 0 {
		t.Errorf("modes set while suspended: %q", modes)
	}
	c.Press(t, "fg\r")
	c.Await(t, window.Ready)
	c.Enter(t, "/exit")
	c.Await(t, "shell 3>")
	c.Press(t, "exit\r")
	c.Ended(t, 0)
}

// U2 and U15: the status line says where one is, and the last line how to go on
// inside: Claude Code's own would go on outside.
func TestTheStatusLineAndTheLastLineLeadBackInside(t *testing.T) {
	w := newWorld(t, script.Say("First answer."), script.Say("Second answer."))
	c := w.interact(t)
	c.Await(t, window.Ready)
	c.Await(t, "claudebox e2e · full")
	c.Resize(t, 200) // so that the last line stays one
	c.Enter(t, "begin")
	c.Await(t, "First answer.")
	c.Leave(t)
	const mark = "resume with: claudebox --profile "
	_, rest, said := strings.Cut(c.String(), mark)
	words := strings.Fields(rest)
	if !said || len(words) < 3 || words[1] != "--resume" || len(words[2]) != len("00000000-0000-0000-0000-000000000000") {
		t.Fatalf("not said how to resume:\n%s", indent(c.String()))
	}
	c = w.interact(t, "--resume", words[2])
	c.Await(t, "First answer.")
	c.Enter(t, "go on")
	c.Await(t, "Second answer.")
	c.Leave(t)
}

// U7: what /theme or /model writes inside is there the next time.
func TestASettingChangedInsideIsThereTheNextTime(t *testing.T) {
	w := newWorld(t, script.Say("One."), script.Say("Two."))
	w.write(t, ".claude/settings.json", `{"theme":"dark"}`)
	w.print(t).succeed(t, "One.")
	found, err := filepath.Glob(w.home + "/.claudebox/instances/*/.claude/settings.json")
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	content := must.Read(t, found[0])
	changed := strings.Replace(content, `"dark"`, `"light"`, 1)
	must.Write(t, found[0], changed)
	w.print(t).succeed(t, "Two.")
	if after, err := os.ReadFile(found[0]); err != nil || string(after) != changed {
		t.Errorf("%v: %s", err, after)
	}
}
