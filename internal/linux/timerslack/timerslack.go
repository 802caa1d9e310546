// Package timerslack has Go's runtime look after itself less often while
// nothing is to be looked after. A thread of it (sysmon) sleeps for 20 µs at a
// time through the first milliseconds of a process: 56 wake-ups in each launch,
// a twentieth of its time on two processors that have other work. The kernel
// may put off the end of a sleep by the timer slack of the thread
// (PR_SET_TIMERSLACK(2const)); with a millisecond there are eight.
//
// A thread has the slack of that which made it, and sysmon is made before any
// package is initialised. So the program begins in this package, where the
// linker is told so (-ldflags=-E=claudebox_entry, see nix/package.nix), and goes
// on in the runtime. Without that nothing is changed.
package timerslack

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// AtStart is the slack of the process when it began, in nanoseconds, which what
// it starts is to have. 0: it is unchanged.
var AtStart uintptr

// Restore gives the calling thread the slack of the start again. A child that
// borrows memory may call it.
//
//go:nosplit
//go:norace
func Restore() {
	if AtStart != 0 {
		syscall.RawSyscall(syscall.SYS_PRCTL, unix.PR_SET_TIMERSLACK, AtStart, 0)
	}
}
