package confine

import "golang.org/x/sys/unix"

// polling is what only this architecture has.
var polling []uintptr

const architecture = unix.AUDIT_ARCH_AARCH64
