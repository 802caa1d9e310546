// Package vfork starts a process that borrows the memory of this one.
package vfork

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Borrowing are the flags of such a start: the child uses this memory
// (CLONE_VM), and this thread waits until it has executed a program or ended
// (CLONE_VFORK).
const Borrowing = unix.CLONE_VM | unix.CLONE_VFORK | uintptr(unix.SIGCHLD)

// Fork is clone(2) with flags that hold [Borrowing], with or without the signal
// at its end. In the child it returns 0,
// on the stack of the parent: what runs there may neither allocate nor grow the
// stack nor return from the function that called Fork, nor take signals, whose
// handlers are the parent's.
func Fork(flags uintptr) (pid, errno uintptr)

// Quietly calls a function that forks, with every signal blocked in this thread:
// the child is born so. It is told what was blocked before. err is of the
// blocking, failed of the fork.
func Quietly(fork func(before unix.Sigset_t) (pid uintptr, failed syscall.Errno)) (pid uintptr, failed syscall.Errno, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, before unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before); err != nil {
		return 0, 0, err
	}
	pid, failed = fork(before)
	return pid, failed, unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
}

// Visit is [Quietly] for a child that executes no program. It returns when the
// child has ended, with an error unless that was by its own will and with 0.
func Visit(fork func(before unix.Sigset_t) (pid uintptr, failed syscall.Errno)) error {
	pid, failed, err := Quietly(fork)
	if failed != 0 {
		return failed
	}
	if err != nil && pid == 0 {
		return err
	}
	for {
		var status unix.WaitStatus
		_, wait := unix.Wait4(int(pid), &status, unix.WALL, nil)
		if wait == unix.EINTR {
			continue
		}
		if wait == nil && status != 0 {
			wait = fmt.Errorf("the child ended with status %#x", uint32(status))
		}
		return errors.Join(err, wait)
	}
}
