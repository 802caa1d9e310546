//go:build lab

package terminal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/internal/ui/audit"
)

// question is what claudebox asks.
const question = audit.Question

func TestTheAnswerDecides(t *testing.T) {
	for name, tc := range map[string]struct {
		keys   string
		starts bool
		status int
	}{
		"y":      {"y\n", true, 5},
		"YES":    {"YES\n", true, 5},
		"n":      {"n\n", false, 125},
		"Enter":  {"\n", false, 125},
		"Ctrl-C": {"\x03", false, 130},
		"Ctrl-D": {"\x04", false, 125},
		"none":   {"yellow\nn\n", false, 125},
		"later":  {"yellow\ny\n", true, 5},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := on(t, w.claudebox())
			before := c.modes(t)
			for _, keys := range strings.SplitAfter(strings.TrimSuffix(tc.keys, "\n"), "\n") {
				c.await(t, question)
				c.press(t, strings.TrimSuffix(keys, "\n"))
				if strings.HasSuffix(tc.keys, "\n") {
					c.press(t, "\n")
				}
			}
			if tc.starts {
				w.agent(t).say(t, "exit 5")
			}
			if got := c.end(t); got != tc.status {
				t.Errorf("status %d, want %d:\n%s", got, tc.status, c.text())
			}
			if after := c.modes(t); after != before {
				t.Errorf("the terminal was %+v and is %+v", before, after)
			}
		})
	}
}

func TestAWordThatLooksLikeACommandIsSaidToBeTheAgents(t *testing.T) {
	w := newWorld(t)
	c := on(t, w.claudebox("report"))
	c.await(t, "report goes to the agent: claudebox has no such command")
	c.await(t, question)
	c.press(t, "n\n")
	if got := c.end(t); got != 125 {
		t.Errorf("status %d:\n%s", got, c.text())
	}
}

// What was typed before the question was seen is no answer to it.
func TestWhatIsTypedBeforeTheQuestionIsNoAnswer(t *testing.T) {
	w := newWorld(t)
	const script = `echo read''y; until test -e "$HOME/go"; do sleep 0.1; done; exec "$@"`
	c := on(t, w.command(append([]string{"sh", "-c", script, "sh"}, w.claudebox().Args...)...))
	c.await(t, "ready")
	c.press(t, "y\n")
	must.Write(t, filepath.Join(w.home, "go"), "")
	c.await(t, question)
	c.press(t, "n\n")
	if got := c.end(t); got != 125 {
		t.Errorf("status %d:\n%s", got, c.text())
	}
}

// The user fills in a file while being asked, or another agent makes one.
func TestASecretFileIsMadeWhileTheQuestionIsAsked(t *testing.T) {
	w := newWorld(t)
	w.profile(t, "probe", `agent: {command: [bash, -c, "printf \"sa%s: %s\" w $(cat .env)", `+w.home+`]}`)
	c := on(t, w.claudebox())
	c.await(t, question)
	must.Write(t, filepath.Join(w.project, ".env"), "NEW-SECRET")
	c.press(t, "y\n")
	if !eventually(func() bool { return strings.Contains(c.text(), "saw:") || strings.Count(c.text(), question) == 2 }) {
		t.Fatal(c.text())
	}
	if !strings.Contains(c.text(), "saw:") {
		c.press(t, "y\n") // what it says has changed
	}
	if got := c.end(t); got != 0 || strings.Contains(c.text(), "NEW-SECRET") {
		t.Errorf("status %d\n%s", got, c.text())
	}
}

func TestWithoutATerminalItIsRefusedWithARemedy(t *testing.T) {
	w := newWorld(t)
	cmd := w.claudebox()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	got := run(t, cmd)
	if got.status != 125 || got.stdout != "" || !strings.Contains(got.stderr, "claudebox: remedy: pass `--yes`") {
		t.Errorf("status %d, want 125 and a remedy:\n%s", got.status, got.stderr)
	}
}

// An editor that was started in a terminal has pipes for all streams of what it starts: nobody would see a question.
func TestNothingIsAskedOnATerminalThatNoStreamLeadsTo(t *testing.T) {
	w := newWorld(t)
	own := w.claudebox()
	c := on(t, w.command("bash", "-c", `"$@" </dev/null 2>&1 | cat; exit ${PIPESTATUS[0]}`, "bash", own.Args[0], own.Args[1], own.Args[2]))
	if got := c.end(t); got != 125 || !strings.Contains(c.text(), "there is no terminal to ask on") || strings.Contains(c.text(), question) {
		t.Errorf("status %d:\n%s", got, c.text())
	}
}

func TestYesAsksNothingAndSaysOneLine(t *testing.T) {
	w := newWorld(t)
	c := on(t, w.claudebox("--yes"))
	w.agent(t).say(t, "exit 0")
	said, _, _ := strings.Cut(c.text(), "\x1b\\\x1b<\x1b[?2026l") // what puts the window back
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if got := c.end(t); got != 0 || len(lines) != 1 || !strings.Contains(lines[0], "network full") {
		t.Errorf("status %d, on the terminal: %q", got, c.text())
	}
}

// The question is asked on the terminal although the standard streams are
// elsewhere, and the agent gets every byte of its standard input.
func TestStandardInputIsTheAgentsWhileTheTerminalIsAsked(t *testing.T) {
	w := newWorld(t)
	in, out, err := os.Pipe()
	must.Do(t, err)
	defer in.Close()
	if _, err := out.WriteString("y, says a prompt\n"); err != nil {
		t.Fatal(err)
	}
	out.Close()
	cmd := w.claudebox()
	cmd.Stdin = in
	c := on(t, cmd)
	c.await(t, question)
	c.press(t, "y\n")
	agent := w.agent(t)
	agent.ask(t, "read", `read: "y, says a prompt\n"`)
	agent.say(t, "exit 0")
	if got := c.end(t); got != 0 {
		t.Errorf("status %d", got)
	}
}

func TestConfirmChangedAsksWhenSomethingElseEnters(t *testing.T) {
	w := newWorld(t)
	agentLine := "agent: {command: [" + w.home + "/bin/probe]}"
	w.profile(t, "probe", agentLine, "confirm: changed")
	w.startAgent(t, true)
	w.startAgent(t, false)
	w.profile(t, "probe", agentLine, "confirm: changed", "env: {NEW: variable}")
	w.startAgent(t, true)
	w.startAgent(t, false)
	w.profile(t, "probe", agentLine, "confirm: never", "env: {NEWER: variable}")
	w.startAgent(t, true) // an agent could have written that file
	w.startAgent(t, false)
	must.Do(t, os.MkdirAll(filepath.Join(w.home, ".claudebox/profiles"), 0o700))
	own := filepath.Join(w.home, ".claudebox/profiles/own.yaml")
	must.Write(t, own, "extends: default\nconfirm: never\nnix: {daemon: off}\n")
	start(t, w.command(os.Getenv("CLAUDEBOX_BIN"), "shell", "--profile", "own", "--", "true"), false, func() {})
}

// The file of a plan for a team is approved as it is. Another in its place is asked about, whatever it says.
//
// Promise: no start unasked by what an agent wrote.
func TestAPlanInTheProjectIsApprovedByItsContent(t *testing.T) {
	w := newWorld(t)
	command := w.command(os.Getenv("CLAUDEBOX_BIN"), "shell", "--plan", "plan.json", "--", "true")
	pin := func(lines ...string) {
		t.Helper()
		w.profile(t, "team", lines...)
		cmd := w.command(os.Getenv("CLAUDEBOX_BIN"), "plan", "--pinned", "--profile", w.file("team"))
		must.Write(t, filepath.Join(w.project, "plan.json"), run(t, cmd).stdout)
	}
	launch := func(asked bool) {
		t.Helper()
		again := *command
		start(t, &again, asked, func() {})
	}
	pin("confirm: never", "env: {A: one}")
	launch(true)
	launch(false)
	pin("confirm: never", "env: {A: two}") // no line of the audit changes by it
	launch(true)
	pin("confirm: never", "env: {A: one}")
	launch(true)
}

// The details and the plan are shown by a pager that cannot be made to run
// anything, and the question stands below them again.
func TestTheDetailsAndThePlanAreShownAtTheQuestion(t *testing.T) {
	w := newWorld(t)
	c := on(t, w.claudebox())
	c.resize(t, 100, 500) // all of it fits, so the pager does not wait for keys
	for i, show := range []struct{ key, words string }{{"d\n", "variables made by claudebox"}, {"p\n", "mounts of every sandbox"}} {
		if !eventually(func() bool { return strings.Count(c.text(), question) > i }) {
			t.Fatalf("not asked %d times: %s", i+1, c.text())
		}
		c.press(t, show.key)
		c.await(t, show.words)
	}
	if !eventually(func() bool { return strings.Count(c.text(), question) > 2 }) {
		t.Fatalf("not asked again: %s", c.text())
	}
	c.press(t, "n\n")
	if got := c.end(t); got != 125 {
		t.Errorf("status %d:\n%s", got, c.text())
	}
}

// A command of the user's own asks nothing where its agent was approved of, and is
// no answer for the agent.
func TestACommandAndItsAgentAreAskedAboutOnce(t *testing.T) {
	w := newWorld(t)
	agent := "agent: {command: [" + w.home + "/bin/probe]}"
	w.profile(t, "probe", agent, "confirm: changed")
	command := func(asked bool) {
		t.Helper()
		start(t, w.claudebox("shell", "--profile", w.file("probe"), "--", "true"), asked, func() {})
	}
	command(true)
	command(false)
	for _, asked := range []bool{true, false} {
		w.startAgent(t, asked)
		command(false)
	}
}

// What takes away asks nothing, and a command says what it has more than its agent was approved of.
func TestOnlyWhatIsGrantedIsAskedAbout(t *testing.T) {
	w := newWorld(t)
	agent := "agent: {command: [" + w.home + "/bin/probe]}"
	w.profile(t, "probe", agent, "confirm: changed")
	w.startAgent(t, true)
	must.Write(t, filepath.Join(w.project, ".env"), "TOKEN=1")
	must.Write(t, filepath.Join(w.project, ".envrc"), "true")
	shell := func() *exec.Cmd { return w.claudebox("shell", "--profile", w.file("probe"), "--", "true") }
	start(t, shell(), false, func() {})
	w.startAgent(t, false)
	w.profile(t, "probe", agent, "confirm: changed", "env: {NEW: variable}", "show: [.env]")
	c := on(t, shell())
	c.await(t, question)
	c.press(t, "n\n")
	expect.Contains(t, c.text(), "+ variable NEW from const", "- hidden ~/p/.env")
	c.end(t)
	must.Do(t, os.Remove(filepath.Join(w.project, ".env")))
	w.profile(t, "probe", agent, "confirm: changed")
	w.startAgent(t, false)
}

// startAgent starts the agent, which ends at once, see [start].
func (w *world) startAgent(t *testing.T, asked bool) {
	t.Helper()
	start(t, w.claudebox(), asked, func() { w.agent(t).say(t, "exit 0") })
}

// start starts claudebox and does something in the sandbox. Whether the question
// is asked first must be as told; it is answered by yes.
func start(t *testing.T, claudebox *exec.Cmd, asked bool, do func()) {
	t.Helper()
	c := on(t, claudebox)
	if asked {
		c.await(t, question)
		c.press(t, "y\n")
	}
	do()
	if got := c.end(t); got != 0 || strings.Contains(c.text(), question) != asked {
		t.Errorf("status %d, want to be asked: %v; on the terminal:\n%s", got, asked, c.text())
	}
}
