package confine

import "golang.org/x/sys/unix"

// archCalls are those calls of Go's runtime that not every architecture has.
var archCalls = []uintptr{unix.SYS_EPOLL_WAIT, unix.SYS_ARCH_PRCTL}

// architecture is the kernel's name for the table of system calls that this program uses (seccomp(2)).
const architecture = unix.AUDIT_ARCH_X86_64
