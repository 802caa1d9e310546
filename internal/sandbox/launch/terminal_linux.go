package launch

import (
	"errors"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// saveFlags saves the flags of the standard streams, which the agent shares with claudebox's caller (F_SETFL of
// fcntl(2)): with O_NONBLOCK, that one's reads would fail.
func saveFlags() (restore func()) {
	var saved [3]int
	for fd := range saved {
		saved[fd], _ = unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	}
	return func() {
		for fd, flags := range saved {
			_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags)
		}
	}
}

// terminal is the state that the terminal had before the agent started.
type terminal struct {
	fd     int // claudebox's own; it stays open, as a job is stopped at any time
	state  *term.State
	stream bool // a standard stream is one
}

// saveTerminal saves the state of the terminal: the agent can open it as /dev/tty, wherever the standard streams lead.
// It returns nil if there is none; the methods of a nil terminal do nothing.
func saveTerminal() *terminal {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	state, err := term.GetState(fd)
	if err != nil {
		unix.Close(fd)
		return nil
	}
	return &terminal{fd, state, term.IsTerminal(0) || term.IsTerminal(1) || term.IsTerminal(2)}
}

// release resumes the terminal's output and allows others to open it, if the agent has
// stopped that (ioctl_tty(2)): otherwise our further output, and the user's shell after
// it, would wait for ever. Output that Ctrl-S stopped stays so: that is another state.
func (t *terminal) release() {
	if t == nil || t.isOthers() {
		return
	}
	// The terminal may still belong to a process group of the agent that has ended: then
	// to change the terminal would stop us by SIGTTOU.
	signal.Ignore(syscall.SIGTTOU)
	t.open()
}

// lend does the same before claudebox is stopped, for the shell that then gets the
// terminal; only if the terminal belongs to claudebox's process group.
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
// reports; then wrapping, cursor, character set, colours and scroll region; inserting, line feeds that return,
// a locked keyboard, echo, the keypad's modes, and inverse video; and
// the folder in which the next tab begins (OSC 7), which may be one of the agent's.
// To leave the alternate screen moves the cursor to where it was when that screen was
// entered, in tmux even if it was left long ago. So the sequence enters it first: that
// does nothing if the terminal is in it, and otherwise saves the cursor.
// Before all that it ends a string of the agent's that has no end (tmux takes what follows for a part of it), and
// VT52's mode. Of kitty's keyboard protocol all entries are taken away, however many there are.
const resetModes = "\x1b\\\x1b<\x1b[?2026l\x1b[<99u\x1b[?1049h\x1b[?1049l\x1b[<99u\x1b[>4m" +
	"\x1b[?1016l\x1b[?1015l\x1b[?1006l\x1b[?1005l\x1b[?2048l\x1b[?9l" +
	"\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?1004l\x1b[?2031l\x1b[?2004l" +
	"\x1b[?7h\x1b[?25h\x1b(B\x0f\x1b[0m\x1b7\x1b[?69l\x1b[r\x1b8" +
	"\x1b[4l\x1b[20l\x1b[2l\x1b[12h\x1b[?1l\x1b>\x1b[?5l" + resetFolder

const resetFolder = "\x1b]7;\x1b\\"

// restoreAfter restores the terminal when the agent has ended with err: the kernel's
// modes and those of the terminal's window. It also discards unread input, such as the
// terminal's answers to queries, which a shell would take for a command. An agent that
// was killed by a signal had no chance to do all this; another may have failed to. owns
// is [Agent.OwnsTerminal]: false for a command during which people type ahead for the shell.
//
// The window's modes cannot be read. They are reset unless another program, to which standard output goes (piped), may
// be showing something there (`claudebox -p x | less`); and in any case if the agent was killed, or left the kernel's
// modes changed. Where no standard stream is the terminal, that other program may have changed them.
func (t *terminal) restoreAfter(err error, owns, piped bool) {
	if t == nil || t.isOthers() {
		return
	}
	var exit *ExitError
	now, failed := term.GetState(t.fd)
	torn := errors.As(err, &exit) && exit.signaled() || failed != nil || *now != *t.state
	torn = torn && (t.stream || !piped)
	if torn && term.Restore(t.fd, t.state) != nil {
		return
	}
	switch {
	case os.Getenv("TERM") == "dumb":
	case piped && !torn:
		t.print(resetFolder) // which shows nothing
	case torn, owns:
		t.awaitAnswers(func() { t.print(resetModes + lastQuestion) })
	default:
		t.print(resetModes)
	}
	if torn || owns && (t.stream || !piped) {
		_ = unix.IoctlSetInt(t.fd, unix.TCFLSH, unix.TCIFLUSH)
	}
}

func (t *terminal) print(text string) {
	_, _ = unix.Write(t.fd, []byte(text)) // the window may be closed
}

// A terminal answers in the order in which it is asked. So once it has answered lastQuestion (DA1), which every one
// does, none of its answers to the agent is still on its way.
const lastQuestion = "\x1b[c"

var lastAnswer = regexp.MustCompile(`\x1b\[\?[0-9;]*c`)

// Bounds of [terminal.awaitAnswers]: for a terminal that does not answer; for what comes behind an answer that was to
// the agent's own such question; and for one that goes on for ever.
const (
	answerTime = 2 * time.Second
	quietTime  = 20 * time.Millisecond
	longestEnd = 4 * time.Second
)

// awaitAnswers asks, and reads what the terminal answers.
func (t *terminal) awaitAnswers(ask func()) {
	modes, err := unix.IoctlGetTermios(t.fd, unix.TCGETS)
	if err != nil {
		return
	}
	unread := *modes
	unread.Lflag &^= unix.ICANON | unix.ECHO
	_ = unix.IoctlSetTermios(t.fd, unix.TCSETS, &unread)
	defer unix.IoctlSetTermios(t.fd, unix.TCSETS, modes) //nolint:errcheck // it could be set before
	signal.Ignore(syscall.SIGTTIN)
	_ = unix.IoctlSetInt(t.fd, unix.TCFLSH, unix.TCIFLUSH) // an answer to the agent is not that to us
	ask()
	piece, got := make([]byte, 4<<10), []byte{}
	for wait, until := answerTime, time.Now().Add(longestEnd); time.Now().Before(until); {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(t.fd), Events: unix.POLLIN}}, int(wait.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if ready <= 0 {
			return
		}
		n, err := unix.Read(t.fd, piece)
		if n <= 0 || err != nil {
			return
		}
		if got = append(got, piece[:n]...); lastAnswer.Match(got) {
			wait = quietTime
		}
	}
}

// isOthers reports whether the terminal belongs to another process group that still
// exists, such as a shell in which claudebox runs in the background: it has set modes of
// its own.
func (t *terminal) isOthers() bool {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err != nil || group != syscall.Getpgrp() && !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH)
}
