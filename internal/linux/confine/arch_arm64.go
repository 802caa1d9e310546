package confine

import "golang.org/x/sys/unix"

// archCalls are those calls of Go's runtime that not every architecture has; arm64 has none.
var archCalls []uintptr

// architecture is the kernel's name for the table of system calls that this program uses (seccomp(2)).
const architecture = unix.AUDIT_ARCH_AARCH64
