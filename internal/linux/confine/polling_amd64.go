package confine

import "golang.org/x/sys/unix"

// polling are runtime calls that only this architecture has.
var polling = []uintptr{unix.SYS_EPOLL_WAIT, unix.SYS_ARCH_PRCTL}

const architecture = unix.AUDIT_ARCH_X86_64
