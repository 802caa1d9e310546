//go:build lab

package terminal_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"claudebox/checks/kit/must"
)

func TestKeysOfTheTerminalReachTheAgentAndAllLive(t *testing.T) {
	for name, tc := range map[string]struct{ key, signal string }{
		"Ctrl-C":  {"\x03", "signal SIGINT"},
		"Ctrl-\\": {"\x1c", "signal SIGQUIT"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			shell := w.shell(t)
			agent := shell.launch(t, w)
			before := pids(w.processes())
			for range 3 {
				shell.press(t, tc.key)
				agent.await(t, tc.signal)
			}
			// claudebox passes on in order: what it had of the keys has
			// arrived when this has.
			w.parent(t).Signal(syscall.SIGTERM)
			agent.await(t, "signal SIGTERM")
			agent.ping(t)
			if after := pids(w.processes()); !slices.Equal(after, before) {
				t.Errorf("processes were %v, are %v", before, after)
			}
			if got := agent.count(tc.signal); got != 3 {
				t.Errorf("the agent got %q for 3 keys", agent.signals())
			}
			agent.say(t, "exit 7")
			shell.status(t, "7")
		})
	}
}

func TestResizeReachesTheAgent(t *testing.T) {
	w := newWorld(t)
	shell := w.shell(t)
	agent := shell.launch(t, w)
	agent.ask(t, "size", "size: 80x24")
	shell.resize(t, 132, 43)
	agent.await(t, "signal SIGWINCH")
	agent.ask(t, "size", "size: 132x43")
	agent.say(t, "exit 0")
	shell.status(t, "0")
}

func TestTheWholeJobStopsAndGoesOn(t *testing.T) {
	for name, tc := range map[string]struct{ key, command string }{
		"by Ctrl-Z":                 {key: "\x1a"},
		"by the agent to its group": {command: "killall TSTP"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			shell := w.shell(t)
			agent := shell.launch(t, w)
			for range 3 {
				if shell.press(t, tc.key); tc.command != "" {
					agent.say(t, tc.command)
				}
				shell.await(t, "Stopped")
				w.awaitStates(t, "T")
				shell.enter(t, "fg")
				agent.await(t, "signal SIGCONT")
				agent.ping(t)
				w.awaitStates(t, "SR")
			}
			agent.say(t, "exit 3")
			shell.status(t, "3")
		})
	}
}

// What no program can catch would end or halt claudebox, which is in the same
// group, and with it what watches over the project and judges what was left.
func TestAnAgentKillsClaudeboxByItsGroup(t *testing.T) {
	for _, signal := range []string{"KILL", "STOP", "SEGV", "ABRT", "USR1"} {
		t.Run(signal, func(t *testing.T) {
			w := newWorld(t)
			shell := w.shell(t)
			agent := shell.launch(t, w)
			agent.ask(t, "killall "+signal, "killall: operation not permitted")
			agent.say(t, "exit 0")
			shell.status(t, "0")
		})
	}
}

// The kernel knows another way to signal a group that has no number inside: for a terminal with O_ASYNC it signals
// whom the terminal belongs to. Halted by that, claudebox held nothing back, and the agent went on in a group of its own.
func TestAnAgentHasTheTerminalsKeysKillClaudebox(t *testing.T) {
	for way, answer := range map[string]string{"O_ASYNC": "operation not permitted", "FIOASYNC": "<nil>"} {
		for _, signal := range []string{"KILL", "STOP"} {
			t.Run(way+" "+signal, func(t *testing.T) {
				w := newWorld(t)
				shell := w.shell(t)
				agent := shell.launch(t, w)
				agent.ask(t, "keys "+way+" "+signal, "keys: "+answer)
				shell.press(t, "x\n")
				agent.ask(t, "read", `read: "x\n"`)
				agent.say(t, "exit 0")
				shell.status(t, "0")
			})
		}
	}
}

// While claudebox is stopped nobody lays the cover of a file again that the
// user replaces. So nothing inside may go on, whatever it does with signals.
func TestASuspendedSessionReadsWhatItsUserWritesMeanwhile(t *testing.T) {
	for name, reader := range map[string]string{
		"ignoring the key":      `trap "" TSTP`,
		"in a group of its own": `set -m`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			file := func(name string) string { return filepath.Join(w.project, name) }
			must.Write(t, file(".env"), "OLD")
			must.Write(t, file("agent.sh"), reader+"\n(while :; do cat .env >>seen; sleep 0.01; done) </dev/null >/dev/null 2>&1 &\n"+
				"trap - TSTP; echo begun >mark; read -r line; echo $line; kill -9 $!; exit 0\n")
			w.profile(t, "probe", `agent: {command: [bash, -c, "trap 'exit 0' HUP; . ./agent.sh", `+w.home+`]}`)
			shell := w.shell(t)
			shell.enter(t, strings.Join(w.claudebox("-y").Args, " "))
			eventually(func() bool { return exists(file("mark")) })
			time.Sleep(1200 * time.Millisecond) // the covers are watched by then
			shell.press(t, "\x1a")
			shell.await(t, "Stopped")
			w.awaitStates(t, "T")
			must.Write(t, file("new"), "NEW-SECRET")
			must.Do(t, os.Rename(file("new"), file(".env")))
			time.Sleep(100 * time.Millisecond)
			if got, _ := os.ReadFile(file("seen")); len(got) > 0 {
				t.Errorf("%d bytes were read of what is hidden", len(got))
			}
			shell.enter(t, "fg")
			shell.press(t, "over\n")
			shell.status(t, "0")
		})
	}
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// An agent that stops itself alone leaves the shell waiting: nobody outside
// is the parent of a process inside, so nobody is told. Ctrl-Z then stops the
// rest of the job, and fg continues all of it.
func TestAnAgentThatStopsItselfAloneIsBroughtBackByCtrlZ(t *testing.T) {
	for _, signal := range []string{"TSTP", "STOP"} {
		t.Run(signal, func(t *testing.T) {
			w := newWorld(t)
			shell := w.shell(t)
			agent := shell.launch(t, w)
			agent.say(t, "kill "+signal)
			w.awaitOneStopped(t)
			shell.press(t, "\x1a")
			shell.await(t, "Stopped")
			shell.enter(t, "fg")
			agent.await(t, "kill: went on")
			agent.say(t, "exit 0")
			shell.status(t, "0")
		})
	}
}

// parent is claudebox itself, whoever started it.
func (w *world) parent(t *testing.T) *os.Process {
	t.Helper()
	for _, p := range w.processes() {
		if strings.HasPrefix(p.words, os.Getenv("CLAUDEBOX_BIN")+" ") {
			own, err := os.FindProcess(p.pid)
			must.Do(t, err)
			return own
		}
	}
	t.Fatal("no claudebox runs")
	return nil
}

func (w *world) awaitOneStopped(t *testing.T) {
	t.Helper()
	if !eventually(func() bool {
		return slices.ContainsFunc(w.processes(), func(p process) bool { return p.state == 'T' })
	}) {
		t.Fatal("no process has stopped")
	}
}

func TestWhatIsSentToClaudeboxAloneReachesTheAgentOnce(t *testing.T) {
	for name, s := range map[string]syscall.Signal{"signal SIGTERM": syscall.SIGTERM, "signal SIGHUP": syscall.SIGHUP} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := on(t, w.claudebox("-y"))
			agent := w.agent(t)
			for range 3 {
				must.Do(t, c.cmd.Process.Signal(s))
				agent.await(t, name)
			}
			agent.ping(t)
			if got := agent.signals(); len(got) != 3 {
				t.Errorf("the agent got %q", got)
			}
			agent.ask(t, "default", "default: done")
			must.Do(t, c.cmd.Process.Signal(s))
			if got, want := c.end(t), 128+int(s); got != want {
				t.Errorf("status %d, want %d", got, want)
			}
		})
	}
}

// D26: what was sent to claudebox alone was taken for the terminal's, and dropped: `timeout -s INT` did not end a session.
func TestAnInterruptOfClaudeboxAloneReachesTheAgentOnce(t *testing.T) {
	for name, s := range map[string]syscall.Signal{"signal SIGINT": syscall.SIGINT, "signal SIGQUIT": syscall.SIGQUIT} {
		for where, terminal := range map[string]bool{"without a terminal": false, "where no key sends one": true} {
			t.Run(name+" "+where, func(t *testing.T) {
				w := newWorld(t)
				cmd := w.claudebox("-y")
				c := &tty{cmd: cmd}
				if terminal {
					c = on(t, cmd)
				} else {
					cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
					must.Do(t, cmd.Start())
				}
				agent := w.agent(t)
				if terminal {
					agent.ask(t, "raw", "raw: done")
				}
				for range 3 {
					must.Do(t, cmd.Process.Signal(s))
					agent.await(t, name)
				}
				agent.ping(t)
				if got := agent.signals(); len(got) != 3 {
					t.Errorf("the agent got %q", got)
				}
				agent.ask(t, "default", "default: done")
				must.Do(t, cmd.Process.Signal(s))
				want := 128 + int(s)
				if s == syscall.SIGQUIT { // by which a program in Go says what it does, and exits
					want = 2
				}
				if got := c.end(t); got != want {
					t.Errorf("status %d, want %d", got, want)
				}
			})
		}
	}
}

// The terminal could have sent it, but the agent would have ended by it.
func TestAnInterruptOfClaudeboxAloneEndsAnAgentThatLeavesItToTheKernel(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(w.project, "file")
	must.Write(t, file, "")
	c := on(t, w.claudebox("shell", "-y", "--", "tail", "-f", file))
	reads := func() bool {
		return slices.ContainsFunc(w.processes(), func(p process) bool { return strings.HasPrefix(p.words, "tail ") })
	}
	if !eventually(reads) {
		t.Fatalf("it does not start: %+v", w.processes())
	}
	must.Do(t, c.cmd.Process.Signal(syscall.SIGINT))
	if got := c.end(t); got != 130 {
		t.Errorf("status %d", got)
	}
}

func TestNothingIsLeftWhenTheTerminalCloses(t *testing.T) {
	w := newWorld(t)
	shell := w.shell(t)
	agent := shell.launch(t, w)
	agent.ask(t, "default", "default: done")
	shell.close()
	agent.awaitEnd(t)
	w.awaitGone(t)
	shell.end(t)
}

func TestAJobInTheBackgroundIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	shell := w.shell(t)
	agent := shell.launch(t, w)
	shell.press(t, "\x1a")
	shell.await(t, "Stopped")
	shell.enter(t, "bg")
	agent.await(t, "signal SIGCONT")
	before := shell.modes(t)
	heard := len(agent.signals())
	shell.await(t, prompt)
	shell.press(t, "\x03")
	agent.ping(t)
	if got := agent.signals()[heard:]; len(got) > 0 {
		t.Errorf("the agent got %q", got)
	}
	agent.say(t, "kill KILL")
	w.awaitGone(t)
	if after := shell.modes(t); after != before {
		t.Errorf("the shell's terminal was changed from %+v to %+v", before, after)
	}
	shell.enter(t, "wait") // for nothing: the job is gone
	shell.status(t, "0")
}

// An agent that has the terminal open could read a password that is typed for another program: a process in a session of
// its own is stopped by no job control.
//
// Promise: no open file of yours.
func TestAnAgentInTheBackgroundReadsAPassword(t *testing.T) {
	w := newWorld(t)
	must.Write(t, filepath.Join(w.project, "agent.sh"), "for f in 0 1 2; do [ ! -t $f ] || echo $f >>seen; done\n"+
		"(: </dev/tty) && echo tty >>seen; trap 'echo INT >>seen; exit' INT; echo ready-$((6*7)); while :; do sleep 0.1; done\n")
	shell := w.shell(t)
	shell.enter(t, os.Getenv("CLAUDEBOX_BIN")+" shell -y --no-report -- bash agent.sh "+w.home+" &")
	shell.await(t, "ready-42")
	shell.press(t, "kill -INT %1\n")
	w.awaitGone(t)
	if seen := must.Read(t, filepath.Join(w.project, "seen")); seen != "INT\n" {
		t.Errorf("the agent has seen %q", seen)
	}
}

// A shell continues a stopped job that it ends. An agent that then uses the terminal stops the job again.
func TestASuspendedSessionEndsByOneKill(t *testing.T) {
	for _, signal := range []string{"TERM", "HUP"} {
		t.Run(signal, func(t *testing.T) {
			w := newWorld(t)
			must.Write(t, filepath.Join(w.project, "agent.sh"), "trap 'stty raw' CONT; trap : TERM HUP; echo ready-$((6*7))\n"+
				"while :; do sleep 0.1; done\n")
			w.profile(t, "probe", `agent: {command: [bash, -c, ". ./agent.sh", `+w.home+`]}`)
			shell := w.shell(t)
			shell.enter(t, strings.Join(w.claudebox("-y").Args, " "))
			shell.await(t, "ready-42")
			shell.press(t, "\x1a")
			shell.await(t, "Stopped")
			shell.enter(t, "kill -"+signal+" %1")
			w.awaitGone(t)
		})
	}
}
