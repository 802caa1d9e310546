// Package fork makes a copy of this process that has one thread. Only such a
// process may enter a user namespace (setns(2)); a program of Go's has more by
// the time that it runs main, so no helper that is executed can do it either.
//
// The copy can do next to nothing: other threads may have held locks of Go's
// runtime, so it may neither allocate nor grow its stack nor return from the
// function that forked. It makes system calls by [syscall.RawSyscall], as package
// syscall does between fork and exec, and ends. What it has to say it writes into
// [Shared] memory.
package fork

import (
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Fork is clone(2) with SIGCHLD and further flags, which may not share memory.
// It returns 0 in the copy. It is called by the function that [Start] calls, which
// must be marked go:nosplit, go:norace and go:nocheckptr with all that it calls.
//
//go:nosplit
//go:norace
func Fork(flags uintptr) (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall6(syscall.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	return pid, errno
}

// Start calls a function that forks. Every signal is blocked in the copy: the
// handlers are Go's.
func Start(begin func() (pid uintptr, errno syscall.Errno)) (pid int, err error) {
	runtime.LockOSThread() // the mask is the thread's
	defer runtime.UnlockOSThread()
	var all, before unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before); err != nil {
		return 0, err
	}
	copied, errno := begin()
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil); err != nil {
		return 0, err
	}
	if errno != 0 {
		return 0, errno
	}
	return int(copied), nil
}

// Wait waits until a copy has ended, which has to be with status 0.
func Wait(pid int) error {
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(pid, &status, unix.WALL, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case status != 0:
			return fmt.Errorf("the copy of this process ended with status %#x", uint32(status))
		default:
			return nil
		}
	}
}

// Shared makes memory that a copy shares with this process, filled with zeros.
// The caller gives it back by [unix.Munmap].
func Shared(size int) ([]byte, error) {
	return unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
}
