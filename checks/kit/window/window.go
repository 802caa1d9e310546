package window

import (
	"bytes"
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

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/screen"
)

const rows, columns = 40, 110

// patience is how long a person waits for what must come. It only bounds a
// hang; nothing here measures time.
const patience = 90 * time.Second

// Window is a program on a pseudo-terminal, as a person sees it.
type Window struct {
	cmd  *exec.Cmd
	file *os.File

	mu      sync.Mutex
	display *screen.Screen
	news    chan struct{} // holds an item when the display has changed
	closed  chan struct{} // closed when the program has closed its side
}

// Open starts a program on a terminal that it controls. It is closed when the
// test ends.
func Open(t *testing.T, cmd *exec.Cmd) *Window {
	t.Helper()
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: rows, Cols: columns})
	must.Do(t, err)
	w := &Window{
		cmd: cmd, file: file, display: screen.New(rows, columns),
		news: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	t.Cleanup(func() { _ = file.Close() })
	go w.watch()
	return w
}

// Process is the program.
func (w *Window) Process() *os.Process { return w.cmd.Process }

// watch shows what the program writes until it ends, which the kernel reports
// as EIO.
func (w *Window) watch() {
	defer close(w.closed)
	output := make([]byte, 4096)
	for {
		n, err := w.file.Read(output)
		if err != nil {
			return
		}
		w.show(output[:n])
		if bytes.Contains(output[:n], []byte("\x1b[c")) { // DA1: every terminal says what it is
			_, _ = w.file.WriteString("\x1b[?62c")
		}
	}
}

func (w *Window) show(output []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.display.Write(output) // never fails
	select {
	case w.news <- struct{}{}:
	default: // nobody has looked yet
	}
}

// String is the display.
func (w *Window) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.display.String()
}

// Title is the window's title; empty at rest.
func (w *Window) Title() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.display.Title()
}

// Modes are the modes that are set, see [screen.Screen.Modes].
func (w *Window) Modes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.display.Modes()
}

// Await waits until the display shows the text.
func (w *Window) Await(t *testing.T, text string) {
	t.Helper()
	w.Until(t, strconv.Quote(text), Shows(text))
}

// Until waits for a display that fits.
func (w *Window) Until(t *testing.T, what string, fits func(shown string) bool) {
	t.Helper()
	if !w.within(patience, fits) {
		t.Fatalf("no %s in sight:\n%s", what, indent(w.String()))
	}
}

// within reports whether the display comes to fit before the time is up or the
// program has ended.
func (w *Window) within(limit time.Duration, fits func(shown string) bool) bool {
	ticks := time.NewTicker(time.Second) // a machine that stood still meanwhile has ticked once
	defer ticks.Stop()
	for left := limit; !fits(w.String()); {
		select {
		case <-w.news:
		case <-w.closed:
			return fits(w.String())
		case <-ticks.C:
			if left -= time.Second; left <= 0 {
				return false
			}
		}
	}
	return true
}

// Shows reports whether a display holds the text.
func Shows(text string) func(shown string) bool {
	return func(shown string) bool { return strings.Contains(shown, text) }
}

// Press sends keys, as bytes.
func (w *Window) Press(t *testing.T, keys string) {
	t.Helper()
	if _, err := io.WriteString(w.file, keys); err != nil {
		t.Fatal(err)
	}
}

// Resize gives the terminal another width, as a window manager does.
func (w *Window) Resize(t *testing.T, cols int) {
	t.Helper()
	w.mu.Lock()
	w.display.Resize(rows, cols)
	w.mu.Unlock()
	must.Do(t, pty.Setsize(w.file, &pty.Winsize{Rows: rows, Cols: uint16(cols)}))
}

// end waits for the program's end.
func (w *Window) end(t *testing.T) *os.ProcessState {
	t.Helper()
	select {
	case <-w.closed:
	case <-time.After(patience):
		t.Fatalf("does not end:\n%s", indent(w.String()))
	}
	var exit *exec.ExitError
	if err := w.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return w.cmd.ProcessState
}

// Ended wants the program to end with a status, and to leave a terminal as it
// is at rest.
func (w *Window) Ended(t *testing.T, want int) {
	t.Helper()
	if status := w.end(t); status.ExitCode() != want {
		t.Errorf("ended with %v; want %d", status, want)
	}
	if modes := w.Modes(); len(modes) > 0 {
		t.Errorf("terminal modes left set: %q", modes)
	}
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
