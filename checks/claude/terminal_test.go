//go:build lab

package claude_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"claudebox/checks/claude/screen"
)

const rows, columns = 40, 110

// terminal is a program on a pseudo-terminal, as a person sees it.
type terminal struct {
	cmd  *exec.Cmd
	file *os.File

	mu      sync.Mutex
	display *screen.Screen
	news    chan struct{} // holds an item when the display has changed
	closed  chan struct{} // closed when the program has closed its side
}

// interact starts the agent without a prompt, on a terminal.
func (w *world) interact(t *testing.T, words ...string) *terminal {
	t.Helper()
	return onTerminal(t, w.command(t, words...))
}

// onTerminal starts a program on a terminal that it controls.
func onTerminal(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: rows, Cols: columns})
	if err != nil {
		t.Fatal(err)
	}
	c := &terminal{
		cmd: cmd, file: file, display: screen.New(rows, columns),
		news: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	t.Cleanup(func() { _ = file.Close() })
	go c.watch()
	return c
}

// watch shows what the program writes until it ends, which the kernel reports
// as EIO.
func (c *terminal) watch() {
	_, _ = io.Copy(c, c.file)
	close(c.closed)
}

// Write puts output on the display.
func (c *terminal) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case c.news <- struct{}{}:
	default: // nobody has looked yet
	}
	return c.display.Write(p)
}

func (c *terminal) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.display.String()
}

func (c *terminal) title() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.display.Title()
}

func (c *terminal) modes() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.display.Modes()
}

// await waits until the display shows the text.
func (c *terminal) await(t *testing.T, text string) {
	t.Helper()
	c.until(t, strconv.Quote(text), shows(text))
}

// until waits for a display that fits.
func (c *terminal) until(t *testing.T, what string, fits func(shown string) bool) {
	t.Helper()
	if !c.within(patience, fits) {
		t.Fatalf("no %s in sight:\n%s", what, indent(c.String()))
	}
}

// within tells whether the display comes to fit before the time is up or the
// program has ended.
func (c *terminal) within(limit time.Duration, fits func(shown string) bool) bool {
	timeout := time.After(limit)
	for !fits(c.String()) {
		select {
		case <-c.news:
		case <-c.closed:
			return fits(c.String())
		case <-timeout:
			return false
		}
	}
	return true
}

// enter types a line as a person does: what is typed must show before Enter is
// hit, else it would be taken for a paste.
func (c *terminal) enter(t *testing.T, line string) {
	t.Helper()
	c.press(t, line)
	c.until(t, "typed "+line, func(shown string) bool { return typed(shown) == line })
	c.confirm(t, func(shown string) bool { return typed(shown) != line })
}

// confirm hits Enter until it is heard, for one that comes while Claude Code
// is changing its display can be lost. A person does the same.
func (c *terminal) confirm(t *testing.T, heard func(shown string) bool) {
	t.Helper()
	for range 10 {
		c.press(t, "\r")
		if c.within(3*time.Second, heard) {
			return
		}
	}
	t.Fatalf("Enter is not heard:\n%s", indent(c.String()))
}

func shows(text string) func(shown string) bool {
	return func(shown string) bool { return strings.Contains(shown, text) }
}

// typed is what stands in Claude Code's input line: behind the last prompt.
func typed(shown string) string {
	_, input, _ := strings.Cut(shown[max(0, strings.LastIndex(shown, "\n❯")):], "❯")
	line, _, _ := strings.Cut(input, "\n")
	return strings.TrimSpace(line)
}

func (c *terminal) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := io.WriteString(c.file, keys); err != nil {
		t.Fatal(err)
	}
}

// resize gives the terminal another width, as a window manager does.
func (c *terminal) resize(t *testing.T, cols int) {
	t.Helper()
	c.mu.Lock()
	c.display.Resize(rows, cols)
	c.mu.Unlock()
	if err := pty.Setsize(c.file, &pty.Winsize{Rows: rows, Cols: uint16(cols)}); err != nil {
		t.Fatal(err)
	}
}

// end waits for the program's end.
func (c *terminal) end(t *testing.T) *os.ProcessState {
	t.Helper()
	select {
	case <-c.closed:
	case <-time.After(patience):
		t.Fatalf("does not end:\n%s", indent(c.String()))
	}
	var exit *exec.ExitError
	if err := c.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return c.cmd.ProcessState
}

// ended wants the program to end with a status, and to leave a terminal as it
// is at rest.
func (c *terminal) ended(t *testing.T, want int) {
	t.Helper()
	if status := c.end(t); status.ExitCode() != want {
		t.Errorf("ended with %v; want %d", status, want)
	}
	if modes := c.modes(); len(modes) > 0 {
		t.Errorf("terminal modes left set: %q", modes)
	}
}
