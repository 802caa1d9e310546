// Package release says which Linux this is.
package release

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Name returns what uname -r prints, or "?" if the kernel does not say.
func Name() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return "?"
	}
	return unix.ByteSliceToString(name.Release[:])
}

// IsAtLeast reports whether this is Linux major.minor or newer.
func IsAtLeast(major, minor int) bool {
	var m, n int
	_, err := fmt.Sscanf(Name(), "%d.%d", &m, &n)
	return err == nil && (m > major || m == major && n >= minor)
}
