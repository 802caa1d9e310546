// Package vfork starts a process that borrows the memory of this one.
package vfork

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Borrowing are the flags of such a start: the child uses this memory
// (CLONE_VM), and this thread waits until it has executed a program or ended
// (CLONE_VFORK).
const Borrowing = unix.CLONE_VM | unix.CLONE_VFORK | uintptr(unix.SIGCHLD)

// Fork is clone(2) with flags that hold [Borrowing], with or without the signal
// at its end. In the child it returns 0, on the stack of the parent: what runs
// there may neither allocate nor grow the stack nor return from the function
// that called Fork. Every signal is blocked in it, as the handlers are the
// parent's; before is told what was blocked in this thread (rt_sigprocmask(2)).
//
//go:noescape
func Fork(flags uintptr, before *uint64) (pid, errno uintptr)

// Visit calls a function that forks a child which executes no program. It
// returns when the child has ended, with an error unless that was by its own
// will and with 0.
func Visit(fork func() (pid uintptr, failed syscall.Errno)) error {
	pid, failed := fork()
	if failed != 0 {
		return failed
	}
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(int(pid), &status, unix.WALL, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case status != 0:
			return fmt.Errorf("the child ended with status %#x", uint32(status))
		default:
			return nil
		}
	}
}
