// Package vfork starts a process that borrows the memory of this one.
package vfork

import "golang.org/x/sys/unix"

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
