package window

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/account"
)

// Ready is what Claude Code shows below its prompt when it asks nothing.
const Ready = "bypass permissions on"

// Enter types a line as a person does: what is typed must show before Enter is
// hit, else it would be taken for a paste.
func (w *Window) Enter(t *testing.T, line string) {
	t.Helper()
	w.Press(t, line)
	w.Until(t, "typed "+line, func(shown string) bool { return typed(shown) == line })
	w.Confirm(t, func(shown string) bool { return typed(shown) != line })
}

// Confirm presses Enter until heard says that the display shows its effect. Claude
// Code can lose an Enter while it changes its display; a person presses it again, too.
func (w *Window) Confirm(t *testing.T, heard func(shown string) bool) {
	t.Helper()
	for range 10 {
		w.Press(t, "\r")
		if w.within(3*time.Second, heard) {
			return
		}
	}
	t.Fatalf("Enter is not heard:\n%s", indent(w.String()))
}

// typed is what stands in Claude Code's input line: behind the last prompt.
func typed(shown string) string {
	_, input, _ := strings.Cut(shown[max(0, strings.LastIndex(shown, "\n❯")):], "❯")
	line, _, _ := strings.Cut(input, "\n")
	return strings.TrimSpace(line)
}

// Leave ends Claude Code as a person does.
func (w *Window) Leave(t *testing.T) {
	t.Helper()
	w.Enter(t, "/exit")
	w.Ended(t, 0)
}

// Interrupt presses Ctrl-C until Claude Code ends. It asks for a second one, and waits
// only a moment for it: on a busy machine that comes too late, and a person presses again.
func (w *Window) Interrupt(t *testing.T) {
	t.Helper()
	w.Press(t, "\x03")
	w.Await(t, "Press Ctrl-C again to exit")
	for range 100 {
		w.Press(t, "\x03")
		select {
		case <-w.closed:
			return
		case <-time.After(300 * time.Millisecond):
		}
	}
	t.Fatalf("Ctrl-C is not heard:\n%s", indent(w.String()))
}

// stateInLink finds the OAuth state in the login link. The page behind the link shows
// it after the code, as CODE#STATE.
var stateInLink = regexp.MustCompile(`state=([A-Za-z0-9_-]+)`)

// Login is the way in without a browser, as a person takes it: the link is
// opened elsewhere, and the code that its page shows is pasted.
func (w *Window) Login(t *testing.T, code string) {
	t.Helper()
	w.Await(t, Ready)
	w.Enter(t, "/login")
	w.Await(t, "Claude account with subscription")
	w.Confirm(t, Shows("Paste code here"))
	state := stateInLink.FindStringSubmatch(strings.ReplaceAll(w.String(), "\n", ""))
	if state == nil {
		t.Fatalf("no state in the link:\n%s", indent(w.String()))
	}
	w.Press(t, "\x1b[200~"+code+"#"+state[1]+"\x1b[201~")
	w.Await(t, "***")
	w.Confirm(t, Shows("Logged in as "+account.Owner))
	w.Confirm(t, Shows(Ready))
}
