//go:build lab

package terminal_test

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// agent is the test's side of a running probe.
type agent struct {
	conn  net.Conn
	lines chan string // closed when the probe is gone
	heard []string
}

// agent waits until a probe has started.
func (w *world) agent(t *testing.T) *agent {
	t.Helper()
	w.probes.(*net.UnixListener).SetDeadline(time.Now().Add(patience))
	conn, err := w.probes.Accept()
	if err != nil {
		t.Fatal("no agent has come: ", err)
	}
	t.Cleanup(func() { conn.Close() })
	a := &agent{conn: conn, lines: make(chan string, 1024)}
	go func() {
		defer close(a.lines)
		for s := bufio.NewScanner(conn); s.Scan(); {
			a.lines <- s.Text()
		}
	}()
	a.await(t, "ready")
	return a
}

// await waits for a line from the probe.
func (a *agent) await(t *testing.T, want string) {
	t.Helper()
	if !a.hears(want) {
		t.Fatalf("the agent did not say %q, but %q", want, a.heard)
	}
}

func (a *agent) hears(want string) bool {
	timeout := time.After(patience)
	for {
		select {
		case line, alive := <-a.lines:
			if !alive {
				return false
			}
			a.heard = append(a.heard, line)
			if line == want {
				return true
			}
		case <-timeout:
			return false
		}
	}
}

// say gives the probe a command without waiting for what comes of it.
func (a *agent) say(t *testing.T, command string) {
	t.Helper()
	if _, err := fmt.Fprintln(a.conn, command); err != nil {
		t.Fatal(err)
	}
}

// ask gives the probe a command and waits for its answer.
func (a *agent) ask(t *testing.T, command, answer string) {
	t.Helper()
	a.say(t, command)
	a.await(t, answer)
}

// ping makes sure that the probe is alive, and that all that it had to say
// before has been heard.
func (a *agent) ping(t *testing.T) {
	t.Helper()
	a.ask(t, "ping", "ping: pong")
}

// awaitEnd waits until the probe is gone.
func (a *agent) awaitEnd(t *testing.T) {
	t.Helper()
	if a.hears("never said") {
		t.Fatal("bug: said")
	}
	select {
	case <-a.lines:
	default:
		t.Fatalf("the agent still lives, and said %q", a.heard)
	}
}

// count is how often a line was heard.
func (a *agent) count(line string) int {
	n := 0
	for _, heard := range a.heard {
		if heard == line {
			n++
		}
	}
	return n
}

// signals are those that were heard of, in order.
func (a *agent) signals() []string {
	return slices.DeleteFunc(slices.Clone(a.heard), func(line string) bool { return line[:min(7, len(line))] != "signal " })
}

// What asks a terminal for the user's attention reaches it byte for byte: the bell, and the sequences that terminals
// know for notifications (OSC 9, 99 and 777, with either end). So does a title and a progress bar.
func TestNotificationsReachTheTerminal(t *testing.T) {
	sequences := []string{
		"\a", "\x1b]9;done\a", "\x1b]9;4;1;50\a", "\x1b]99;i=1:d=0;done\x1b\\", "\x1b]777;notify;Claude Code;done\a", "\x1b]0;title\a",
	}
	w := newWorld(t)
	for _, sequence := range sequences {
		octal := ""
		for _, b := range []byte(sequence) {
			octal += fmt.Sprintf(`\%03o`, b)
		}
		w.profile(t, "probe", `agent: {command: [bash, -c, 'printf "<`+octal+`>"']}`)
		c := on(t, w.claudebox("--yes"))
		if got := c.end(t); got != 0 || !strings.Contains(c.text(), "<"+sequence+">") {
			t.Errorf("status %d, %q became %q", got, sequence, c.text())
		}
	}
}
