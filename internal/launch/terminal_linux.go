package launch

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// terminal is the state that the terminal had before the agent started.
type terminal struct {
	state *term.State // nil: standard input is no terminal
}

func saveTerminal() terminal {
	state, err := term.GetState(0)
	if err != nil {
		return terminal{}
	}
	return terminal{state: state}
}

// resetModes switches off what a terminal program may have left on, in the
// order in which Claude Code itself does it: synchronised output, kitty's
// keyboard protocol (which has a stack for each screen, hence twice),
// alternate screen, modifyOtherKeys, mouse, focus, colour scheme and paste
// reports; then wrapping, cursor, character set, colours and scroll region.
const resetModes = "\x1b[?2026l\x1b[<u\x1b[?1049l\x1b[<u\x1b[>4m" +
	"\x1b[?1016l\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?1004l\x1b[?2031l\x1b[?2004l" +
	"\x1b[?7h\x1b[?25h\x1b(B\x0f\x1b[0m\x1b7\x1b[r\x1b8"

// restoreAfter puts the terminal back when the agent was ended by a signal
// and so had no chance to do it. An agent that exits by itself has cleaned
// up, and is not second-guessed.
func (t terminal) restoreAfter(err error) {
	var exit *ExitError
	if t.state == nil || !errors.As(err, &exit) || exit.Code <= 128 {
		return
	}
	signal.Ignore(syscall.SIGTTOU) // we may be in the background by now
	if term.Restore(0, t.state) == nil && term.IsTerminal(1) {
		os.Stdout.WriteString(resetModes)
	}
}
