//go:build lab

package terminal_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// tty is a program that leads a session on a pseudo-terminal of its own, as a
// shell does in a terminal's window.
type tty struct {
	cmd    *exec.Cmd
	master *os.File
	slave  *os.File // kept, to look at the terminal when the program is gone

	mu     sync.Mutex
	output []byte
	seen   int // up to here output was looked at
	news   chan struct{}
	late   string // what it answers the agent, once it is asked what it is
}

// on starts a program on a new terminal.
func on(t *testing.T, cmd *exec.Cmd) *tty {
	t.Helper()
	master, slave, err := pty.Open()
	must.Do(t, err)
	c := &tty{cmd: cmd, master: pollable(t, master), slave: slave, news: make(chan struct{}, 1)}
	t.Cleanup(c.close)
	c.resize(t, 80, 24)
	for _, stream := range []*io.Writer{&cmd.Stdout, &cmd.Stderr} {
		if *stream == nil {
			*stream = slave
		}
	}
	if cmd.Stdin == nil {
		cmd.Stdin = slave
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	control(cmd, slave)
	must.Do(t, cmd.Start())
	go c.read()
	return c
}

// pollable gives a file that can be closed while it is being read.
func pollable(t *testing.T, f *os.File) *os.File {
	t.Helper()
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	must.Do(t, err)
	must.Do(t, unix.SetNonblock(fd, true))
	return os.NewFile(uintptr(fd), f.Name())
}

// close closes the terminal, as when its window goes away.
func (c *tty) close() {
	c.slave.Close()
	c.master.Close()
}

// control makes the terminal the session's, by whichever descriptor has it.
func control(cmd *exec.Cmd, slave *os.File) {
	cmd.SysProcAttr.Setctty = true
	for fd, stream := range []any{cmd.Stdin, cmd.Stdout, cmd.Stderr} {
		if stream == any(slave) {
			cmd.SysProcAttr.Ctty = fd
			return
		}
	}
}

func (c *tty) read() {
	buf := make([]byte, 4096)
	for {
		n, err := c.master.Read(buf)
		c.mu.Lock()
		asked := strings.Count(string(c.output), whoAreYou)
		c.output = append(c.output, buf[:n]...)
		asked, late := strings.Count(string(c.output), whoAreYou)-asked, c.late
		c.mu.Unlock()
		if late != "" {
			time.Sleep(100 * time.Millisecond)
		}
		if asked > 0 { // as every terminal does
			_, _ = io.WriteString(c.master, late+"\x1b[?62c")
		}
		select {
		case c.news <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// whoAreYou is a question that every terminal answers.
const whoAreYou = "\x1b[c"

// await waits until text is shown, behind what was awaited before.
func (c *tty) await(t *testing.T, text string) {
	t.Helper()
	timeout := time.After(patience)
	for !c.passed(text) {
		select {
		case <-c.news:
		case <-timeout:
			t.Fatalf("%q is not shown:\n%q", text, c.text())
		}
	}
}

func (c *tty) passed(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := strings.Index(string(c.output[c.seen:]), text)
	if at >= 0 {
		c.seen += at + len(text)
	}
	return at >= 0
}

func (c *tty) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.ReplaceAll(string(c.output), finished, "")
}

func (c *tty) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := io.WriteString(c.master, keys); err != nil {
		t.Fatal(err)
	}
}

func (c *tty) resize(t *testing.T, columns, rows uint16) {
	t.Helper()
	must.Do(t, pty.Setsize(c.slave, &pty.Winsize{Cols: columns, Rows: rows}))
}

// modes are the terminal's, in full.
func (c *tty) modes(t *testing.T) unix.Termios {
	t.Helper()
	modes, err := unix.IoctlGetTermios(int(c.slave.Fd()), unix.TCGETS)
	must.Do(t, err)
	return *modes
}

// finished comes after all that the program has printed.
const finished = "\x00the program has ended\x00"

// end waits for the program and for all that it has printed, and gives its exit status as a shell has it.
func (c *tty) end(t *testing.T) int {
	t.Helper()
	defer trial.Bound(t, c.cmd)()
	var exit *exec.ExitError
	if err := c.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c.slave, finished); err == nil { // else the window is closed
		seen := c.seen // what the caller awaits comes before
		c.await(t, finished)
		c.seen = seen
	}
	return trial.Status(c.cmd.ProcessState)
}

// prompt is what the shell prints when it waits for a command, see
// [world.environment].
const prompt = "@ "

// shell starts bash with job control on a terminal.
func (w *world) shell(t *testing.T) *tty {
	t.Helper()
	return on(t, w.command("bash", "--norc", "--noprofile", "--noediting", "-i"))
}

// enter types a line once the shell has come back.
func (c *tty) enter(t *testing.T, line string) {
	t.Helper()
	c.await(t, prompt)
	c.press(t, line+"\n")
}

// launch types a call of claudebox with the probe as agent.
func (c *tty) launch(t *testing.T, w *world) *agent {
	t.Helper()
	c.enter(t, strings.Join(w.claudebox("-y").Args, " "))
	return w.agent(t)
}

// status asks the shell how the last command ended.
func (c *tty) status(t *testing.T, want string) {
	t.Helper()
	c.enter(t, "echo status=$?=")
	c.await(t, "\nstatus="+want+"=")
}

// Outside and inside looked alike. What a profile sets stays.
func TestThePromptOfAShellSaysWhereItIs(t *testing.T) {
	for line, want := range map[string]string{"": "[claudebox] ~/p $ ", "env: {PS1: 'mine> '}": "mine> "} {
		w := newWorld(t)
		w.profile(t, "probe", line)
		c := on(t, w.command(os.Getenv("CLAUDEBOX_BIN"), "shell", "-P", w.file("probe"), "-y"))
		c.await(t, want)
		c.press(t, "exit\n")
		if got := c.end(t); got != 0 {
			t.Errorf("status %d", got)
		}
	}
}

// D23: there is an editor, which git finds.
func TestACommitIsWrittenInTheShellsEditor(t *testing.T) {
	w := newWorld(t)
	w.profile(t, "probe", "")
	c := on(t, w.command(os.Getenv("CLAUDEBOX_BIN"), "shell", "-P", w.file("probe"), "-y"))
	c.await(t, "[claudebox]")
	c.press(t, "git init -q ed; cd ed; git -c user.name=n -c user.email=e@x commit -q --allow-empty\n")
	c.await(t, "COMMIT_EDITMSG")
	c.press(t, "typed\x0f")
	c.await(t, "Write to File")
	c.press(t, "\r")
	c.await(t, "Wrote")
	c.press(t, "\x18")
	c.await(t, "[claudebox] ~/p/ed $ ")
	c.press(t, "git log --format=said=%s=\n")
	c.await(t, "said=typed=")
	c.await(t, "[claudebox] ~/p/ed $ ") // git's pager takes what is typed before
	c.press(t, "exit\n")
	c.end(t)
}
