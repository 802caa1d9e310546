//go:build lab

package terminal_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

func TestTheAgentsExitStatusIsClaudeboxs(t *testing.T) {
	for command, want := range map[string]int{
		"exit 0": 0, "exit 1": 1, "exit 42": 42, "exit 125": 125, "exit 255": 255,
		"kill TERM": 143, "kill KILL": 137, "kill HUP": 129, "kill INT": 130,
	} {
		t.Run(command, func(t *testing.T) {
			w := newWorld(t)
			c := on(t, w.claudebox("-y"))
			agent := w.agent(t)
			agent.ask(t, "default", "default: done")
			agent.say(t, command)
			if got := c.end(t); got != want {
				t.Errorf("status %d, want %d; on the terminal: %q", got, want, c.text())
			}
		})
	}
}

func TestFailuresThatAreNotTheAgentsHaveAStatusOfTheirOwn(t *testing.T) {
	for name, tc := range map[string]struct {
		agent  string
		words  []string
		status int
		says   string
	}{
		"bwrap cannot make a mount point": {"/bin/probe", []string{"--mount-ro", ".:/proc/none"}, 125, "claudebox: remedy: "},
		"the agent is not executable":     {"/bin/text", nil, 126, "claudebox: remedy: "},
		"the agent is a folder":           {"/bin", nil, 126, "claudebox: "},
		"there is no agent":               {"/bin/none", nil, 127, "claudebox: remedy: "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			must.Write(t, w.home+"/bin/text", "text\n")
			w.profile(t, "probe", "agent: {command: ["+w.home+tc.agent+"]}")
			got := run(t, w.claudebox(append(tc.words, "-y")...))
			if got.status != tc.status || !strings.Contains(got.stderr, tc.says) || got.stdout != "" {
				t.Errorf("status %d, want %d; want %q on standard error:\n%s", got.status, tc.status, tc.says, got.stderr)
			}
		})
	}
}

// What the caller ignores stays ignored, whatever claudebox does meanwhile;
// all other signals are as they were, and none is blocked.
func TestTheAgentHasTheCallersDispositions(t *testing.T) {
	for name, tc := range map[string]struct{ caller, ignored string }{
		"of a plain call":              {`exec "$@"`, "0000000000000000"},
		"of nohup":                     {`exec nohup "$@"`, "0000000000000001"},
		"of a job in a script":         {`"$@" & wait $!`, "0000000000000006"},
		"of a caller who ignores more": {`trap "" INT QUIT HUP; exec "$@"`, "0000000000000007"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.profile(t, "probe", `agent: {command: [grep, -E, "^Sig(Blk|Ign)", /proc/self/status]}`)
			got := run(t, w.command(append([]string{"sh", "-c", tc.caller, "sh"}, w.claudebox("-y").Args...)...))
			want := "SigBlk:\t0000000000000000\nSigIgn:\t" + tc.ignored + "\n"
			if got.stdout != want {
				t.Errorf("got %q, want %q\n%s", got.stdout, want, got.stderr)
			}
		})
	}
}

func TestATerminalIsPutBackWhenTheAgentIsKilled(t *testing.T) {
	w := newWorld(t)
	c := on(t, w.claudebox("-y"))
	agent := w.agent(t)
	before := c.modes(t)
	agent.ask(t, "raw", "raw: done")
	if c.modes(t) == before {
		t.Fatal("bug: the probe did not change the terminal")
	}
	agent.say(t, "kill KILL")
	if got := c.end(t); got != 137 {
		t.Errorf("status %d", got)
	}
	if after := c.modes(t); after != before {
		t.Errorf("the terminal was %+v and is %+v", before, after)
	}
	c.await(t, "\x1b[?25l") // the last that the agent wrote
	for _, off := range []string{"\x1b[?1049l", "\x1b[?1000l", "\x1b[?2004l", "\x1b[?25h", "\x1b]7;\x1b\\"} {
		c.await(t, off)
	}
}

// A5: an agent that exits by itself can leave the terminal as it likes, too.
func TestATerminalIsPutBackWhenTheAgentExits(t *testing.T) {
	for _, code := range []string{"0", "1", "128"} {
		t.Run(code, func(t *testing.T) {
			w := newWorld(t)
			c := on(t, w.claudebox("-y"))
			agent := w.agent(t)
			before := c.modes(t)
			agent.ask(t, "raw", "raw: done")
			agent.say(t, "exit "+code)
			c.end(t)
			if after := c.modes(t); after != before {
				t.Errorf("the terminal was %+v and is %+v", before, after)
			}
			c.await(t, "\x1b[?25l") // the last that the agent wrote
			for _, off := range []string{"\x1b\\\x1b<\x1b[?2026l\x1b[<99u", "\x1b[?1049l", "\x1b[>4m", "\x1b[?1000l", "\x1b[?2004l", "\x1b[?25h"} {
				c.await(t, off)
			}
		})
	}
}

// afterAgent is a terminal in which an agent has done one thing, and has exited.
func afterAgent(t *testing.T, do, done string) *tty {
	t.Helper()
	w := newWorld(t)
	c := on(t, w.claudebox("-y"))
	agent := w.agent(t)
	agent.ask(t, do, done)
	agent.say(t, "exit 0")
	c.end(t)
	return c
}

// So can one that changes nothing but the modes of the window.
func TestTheModesOfTheWindowAreOffWhenTheAgentExits(t *testing.T) {
	c := afterAgent(t, "print \x1b[?1003h\x1b[?2004h\x1b[4h\x1b[2h", "print: done")
	c.await(t, "\x1b[?1003h")
	for _, off := range []string{"\x1b[?1003l", "\x1b[?2004l", "\x1b[4l", "\x1b[20l", "\x1b[2l"} {
		c.await(t, off)
	}
}

// An agent says where the terminal's next tab begins: in a repository of its own, whose orders a prompt there obeys.
func TestTheNextTabBeginsWhereTheAgentSaid(t *testing.T) {
	c := afterAgent(t, "print \x1b]7;file:///agents\x1b\\", "print: done")
	if text := c.text(); strings.LastIndex(text, "\x1b]7;\x1b\\") < strings.Index(text, "\x1b]7;file:///agents") {
		t.Errorf("%q", text)
	}
}

// The agent opens the terminal wherever its standard streams lead. What would show is not put back while another program
// may be showing something there.
func TestAnAgentLeavesSomethingOnATerminalThatItsOutputDoesNotGoTo(t *testing.T) {
	const leaves = "printf '\\033]7;file:///agents\\033\\134\\033[?1003h' >/dev/tty\n"
	const folder, mouse = "\x1b]7;\x1b\\", "\x1b[?1003l"
	for how, tc := range map[string]struct {
		what, to string
		want     []string
	}{
		"to a file":               {"-y", ">../out", []string{mouse, folder, whoAreYou}},
		"nothing to the terminal": {"-y", "</dev/null >../out 2>&1", []string{mouse, folder, whoAreYou}},
		"thrown away":             {"-y", ">/dev/null 2>&1", []string{mouse, folder, whoAreYou}},
		"a command":               {"shell -y -- bash leaves", "", []string{mouse, folder}},
		"to another program":      {"-y", "| cat >../out", []string{folder}},
	} {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t)
			must.Write(t, filepath.Join(w.project, "leaves"), leaves)
			w.profile(t, "probe", "agent: {command: [bash, leaves]}")
			c := on(t, w.command("sh", "-c", strings.Join(w.claudebox().Args, " ")+" "+tc.what+" "+tc.to))
			if got := c.end(t); got != 0 {
				t.Fatalf("status %d: %q", got, c.text())
			}
			_, after, left := strings.Cut(c.text(), "\x1b[?1003h")
			for _, off := range tc.want {
				if !left || !strings.Contains(after, off) {
					t.Errorf("%q is not there: %q", off, c.text())
				}
			}
		})
	}
}

// A5: what the window answers to an agent's question would be a command of the
// user's shell.
func TestTheAnswerToAQuestionIsNoCommand(t *testing.T) {
	w := newWorld(t)
	shell := w.shell(t)
	agent := shell.launch(t, w)
	agent.ask(t, "print \x1b[6n", "print: done")
	shell.await(t, "\x1b[6n")
	shell.press(t, "echo ans''wer\n")
	agent.say(t, "exit 0")
	shell.status(t, "0")
	if strings.Contains(shell.text(), "\nanswer") {
		t.Errorf("it was run:\n%q", shell.text())
	}
}

// Nor is what the window answers later than the agent ends: a slow one does, or one that is far away. An answer that the
// agent left unread is not taken for the last one. On a busy machine it may be later than claudebox waits.
func TestALateAnswerToAQuestionIsNoCommand(t *testing.T) {
	const tries = 5
	for try := 1; ; try++ {
		w := newWorld(t)
		shell := w.shell(t)
		agent := shell.launch(t, w)
		agent.ask(t, "print "+whoAreYou, "print: done")
		shell.await(t, "^[[?62c") // as the terminal echoes it
		shell.mu.Lock()
		shell.late = "echo ans''wer\n"
		shell.mu.Unlock()
		agent.say(t, "exit 0")
		shell.enter(t, "\necho e''nd") // on a line of its own
		shell.await(t, "end\r\n")
		if !strings.Contains(shell.text(), "\nanswer") {
			return
		}
		if try == tries {
			t.Fatalf("it was run:\n%q", shell.text())
		}
	}
}

// An agent has the kernel say that the window is narrow. The next question would say "1 more" where a folder's name is.
func TestAnAgentMakesTheNextQuestionNarrow(t *testing.T) {
	w := newWorld(t)
	shell := w.shell(t)
	shell.enter(t, "stty cols 9; "+strings.Join(w.claudebox().Args, " "))
	shell.await(t, "~/p; also ~/meet")
	shell.await(t, "Enter [n]: ") // what is typed before is dropped
	shell.press(t, "n\n")
	shell.status(t, "125")
}

// The terminal is the same open file for the agent as for what runs after it.
func TestAnAgentLeavesReadsThatFail(t *testing.T) {
	c := afterAgent(t, "nonblock", "nonblock: <nil>")
	raw, err := c.slave.SyscallConn() // Fd would change it
	must.Do(t, err)
	must.Do(t, raw.Control(func(fd uintptr) {
		if flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 {
			t.Errorf("flags %#x, %v", flags, err)
		}
	}))
}

// What people type ahead of the end of a command stays.
func TestWhatIsTypedAheadOfACommandsEndStays(t *testing.T) {
	w := newWorld(t)
	shell := w.shell(t)
	shell.enter(t, os.Getenv("CLAUDEBOX_BIN")+` -P `+w.file("probe")+` shell -y -- bash -c "echo beg''un; sleep 1"`)
	shell.await(t, "\nbegun")
	shell.press(t, "echo ah''ead\n")
	shell.await(t, prompt+"ahead")
}

// The output of another program is not the agent's to put back.
func TestNothingIsWrittenWhereTheOutputGoesElsewhere(t *testing.T) {
	w := newWorld(t)
	c := on(t, w.command("sh", "-c", strings.Join(w.claudebox("-y").Args, " ")+" | cat >/dev/null"))
	agent := w.agent(t)
	agent.say(t, "exit 0")
	c.end(t)
	if got := c.text(); strings.Contains(got, "\x1b[?") {
		t.Errorf("on the terminal: %q", got)
	}
}

// A5: the user's shell, which Ctrl-Z brings, writes to the same terminal.
func TestAStoppedAgentStopsTheTerminalsOutput(t *testing.T) {
	w := newWorld(t)
	shell := w.shell(t)
	agent := shell.launch(t, w)
	agent.ask(t, "default", "default: done")
	agent.ask(t, "hold", "hold: <nil>")
	shell.press(t, "\x1a")
	shell.enter(t, "echo again >/dev/tty")
	shell.await(t, "\nagain")
	shell.enter(t, "kill %1; fg")
	shell.await(t, prompt)
}

// What claudebox has to say then would wait for ever, and the shell after it.
func TestAnAgentStopsTheTerminalsOutput(t *testing.T) {
	for _, end := range []string{"exit 0", "kill KILL"} {
		t.Run(end, func(t *testing.T) {
			w := newWorld(t)
			must.Write(t, filepath.Join(w.project, "Makefile"), "")
			shell := w.shell(t)
			agent := shell.launch(t, w)
			agent.ask(t, "hold", "hold: <nil>")
			must.Do(t, os.Remove(filepath.Join(w.project, "Makefile")))
			agent.say(t, end)
			shell.await(t, "Makefile")
			shell.enter(t, "echo again >/dev/tty")
			shell.await(t, "\nagain")
		})
	}
}

// sleeper makes the profile's agent one that does nothing, and whose command
// line tells whose it is.
func (w *world) sleeper(t *testing.T) {
	t.Helper()
	w.profile(t, "probe", `agent: {command: [bash, -c, "sleep inf; exit 1", `+w.home+`]}`)
}

// awaitSleeper waits until the agent of [world.sleeper] runs.
func (w *world) awaitSleeper(t *testing.T) {
	t.Helper()
	runs := func() bool {
		return slices.ContainsFunc(w.processes(), func(p process) bool {
			program, _, _ := strings.Cut(p.words, " ")
			return filepath.Base(program) == "bash"
		})
	}
	if !eventually(runs) {
		t.Fatalf("the agent does not start: %+v", w.processes())
	}
}

// Whenever TERM comes, it ends the sandbox, with the status of that signal,
// and nothing is left.
func TestTermWhileTheSandboxStartsIsNotLost(t *testing.T) {
	w := newWorld(t)
	w.sleeper(t)
	for range 40 {
		cmd := w.claudebox("-y")
		must.Do(t, cmd.Start())
		pause := time.Duration(rand.N(25_000)) * time.Microsecond
		time.Sleep(pause)
		cmd.Process.Signal(syscall.SIGTERM)
		ended := trial.Bound(t, cmd)
		cmd.Wait()
		ended()
		if got := trial.Status(cmd.ProcessState); got != 143 {
			t.Errorf("TERM after %v: status %d", pause, got)
		}
	}
	w.awaitGone(t)
}

func TestNothingSurvivesClaudebox(t *testing.T) {
	w := newWorld(t)
	w.sleeper(t)
	before := w.filesAfterARun(t)
	for range 50 {
		cmd := w.claudebox("-y")
		must.Do(t, cmd.Start())
		pause := time.Duration(rand.N(25_000)) * time.Microsecond
		time.Sleep(pause)
		cmd.Process.Kill()
		cmd.Wait()
		if !eventually(func() bool { return len(w.processes()) == 0 }) {
			t.Fatalf("killed after %v, and left behind: %+v", pause, w.processes())
		}
	}
	// The kernel may still be closing what the last of them held open.
	var after []string
	same := func() bool { after = w.filesAfterARun(t); return slices.Equal(after, before) }
	if !eventually(same) {
		t.Errorf("files were\n%s\nand are\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

// writing is a cache that a writer left which was killed: the next one that writes it takes that away.
var writing = regexp.MustCompile(`/\.cache/claudebox/[a-z-]+\.\d+$`)

// filesAfterARun is what one whole run leaves, but for kept plans and what is known of the home, which a second run
// adds to: a run sweeps what killed ones could not.
func (w *world) filesAfterARun(t *testing.T) []string {
	t.Helper()
	w.profile(t, "finish", `agent: {command: ["true"]}`)
	cmd := w.command(os.Getenv("CLAUDEBOX_BIN"), "-P", w.file("finish"), "-y")
	if got := run(t, cmd); got.status != 0 {
		t.Fatalf("status %d\n%s", got.status, got.stderr)
	}
	return slices.DeleteFunc(w.files(t), func(file string) bool {
		return filepath.Base(file) == "finish.yaml" || strings.Contains(file, "/plan-cache") ||
			strings.Contains(file, "/.cache/claudebox/home/") || writing.MatchString(file)
	})
}
