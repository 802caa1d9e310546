package launch

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// terminal is the state that the terminal had before the agent started.
type terminal struct {
	fd    int // of a standard stream
	state *term.State
}

// saveTerminal remembers the terminal that a standard stream is; nil: none
// is one.
func saveTerminal() *terminal {
	for fd := range 3 {
		if state, err := term.GetState(fd); err == nil {
			return &terminal{fd: fd, state: state}
		}
	}
	return nil
}

// release lets the terminal write again, and others open it, where the agent
// has stopped that (ioctl_tty(2)): what is still to be said would wait forever,
// and the user's shell after it. A stop by Ctrl-S is another one and stays.
func (t *terminal) release() {
	if t == nil || t.isOthers() {
		return
	}
	// The terminal may still belong to a process group of the agent's that is
	// gone; to change it then stops us otherwise.
	signal.Ignore(syscall.SIGTTOU)
	t.open()
}

// lend does so for the shell that comes when claudebox is stopped.
func (t *terminal) lend() {
	if t == nil {
		return
	}
	if group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP); err == nil && group == syscall.Getpgrp() {
		t.open()
	}
}

func (t *terminal) open() {
	_ = unix.IoctlSetInt(t.fd, unix.TCXONC, tcoon)
	_ = unix.IoctlSetInt(t.fd, unix.TIOCNXCL, 0)
}

const tcoon = 1 // TCOON (asm-generic/termbits.h)

// resetModes switches off what a terminal program may have left on, in the
// order in which Claude Code itself does it: synchronised output, kitty's
// keyboard protocol (which has a stack for each screen, hence twice),
// alternate screen, modifyOtherKeys, mouse, focus, colour scheme and paste
// reports; then wrapping, cursor, character set, colours and scroll region.
// Leaving the alternate screen puts the cursor where it was when that was
// entered, in tmux also where it had been left long before. So it is entered
// first: that does nothing for who is there, and saves the cursor for who is not.
const resetModes = "\x1b[?2026l\x1b[<u\x1b[?1049h\x1b[?1049l\x1b[<u\x1b[>4m" +
	"\x1b[?1016l\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?1004l\x1b[?2031l\x1b[?2004l" +
	"\x1b[?7h\x1b[?25h\x1b(B\x0f\x1b[0m\x1b7\x1b[r\x1b8"

// restoreAfter puts the terminal back when the agent has ended: its modes in
// the kernel, those of its window, and what was asked of it and not read: a
// shell would take the answer for a command. An agent that a signal ended had no
// chance to do it, another may not have wanted to. owns: the agent takes
// the terminal for itself from a command, ahead of whose end people type.
//
// The window's modes are not known. After an agent that left the kernel's as
// they were they are set where it wrote to the window by its output alone: else
// another program may show something there (`claudebox -p x | less`).
func (t *terminal) restoreAfter(err error, owns bool) {
	if t == nil || t.isOthers() {
		return
	}
	var exit *ExitError
	now, failed := term.GetState(t.fd)
	torn := errors.As(err, &exit) && exit.signaled() || failed != nil || *now != *t.state
	if torn && term.Restore(t.fd, t.state) != nil {
		return
	}
	switch out, isTerminal := outputTerminal(); {
	case !isTerminal || os.Getenv("TERM") == "dumb":
	case torn, owns && out == os.Stdout:
		out.WriteString(resetModes)
	}
	if torn || owns {
		_ = unix.IoctlSetInt(t.fd, unix.TCFLSH, unix.TCIFLUSH)
	}
}

// outputTerminal is the first of standard output and error that is a terminal.
func outputTerminal() (*os.File, bool) {
	for _, stream := range []*os.File{os.Stdout, os.Stderr} {
		if term.IsTerminal(int(stream.Fd())) {
			return stream, true
		}
	}
	return nil, false
}

// isOthers reports whether another living job has the terminal: a shell that
// claudebox runs in the background of, with modes of its own.
func (t *terminal) isOthers() bool {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err != nil || group != syscall.Getpgrp() && !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH)
}
