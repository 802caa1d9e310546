package confine

import "golang.org/x/sys/unix"

// polling are runtime calls that only this architecture has.
var polling []uintptr

const architecture = unix.AUDIT_ARCH_AARCH64
