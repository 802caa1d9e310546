package launch

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/proctree"
)

// gotIt reports whether the agent got a signal that came to claudebox, an INT or QUIT: the terminal sends these to the
// whole job, kill(1) perhaps to claudebox alone. Go does not say who sent a signal (sigaction(2), si_code). But an
// agent that leaves it to the kernel has ended by it, at once, if it got it. Another one got it if it was the
// terminal's.
func gotIt(agent int, s syscall.Signal) bool {
	const atOnce = 100 * time.Millisecond
	if of, err := unix.Getsid(agent); err == nil && of != ownSession() {
		return false // the terminal is another session's
	}
	if handles(agent, s) {
		return terminalSends()
	}
	for begun := time.Now(); ; time.Sleep(settling) {
		if state, _ := proctree.State(agent); state == proctree.Gone || state == 'Z' {
			return true
		}
		if time.Since(begun) > atOnce {
			return false
		}
	}
}

// handles reports whether a process catches, ignores or blocks a signal (proc_pid_status(5)); false, if it is gone.
func handles(pid int, s syscall.Signal) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if name != "SigBlk" && name != "SigIgn" && name != "SigCgt" {
			continue
		}
		mask, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		if err != nil || mask>>(s-1)&1 == 1 {
			return true
		}
	}
	return false
}

func ownSession() int {
	of, _ := unix.Getsid(0) // it never fails for oneself
	return of
}

// terminalSends reports whether the terminal sends signals to claudebox's job: it has it in the foreground, and has not
// been told to hand on the keys for them as they are.
func terminalSends() bool {
	tty, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false // this process has none
	}
	defer unix.Close(tty)
	group, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP)
	if err != nil || group != unix.Getpgrp() {
		return false
	}
	modes, err := unix.IoctlGetTermios(tty, unix.TCGETS)
	return err == nil && modes.Lflag&unix.ISIG != 0
}
