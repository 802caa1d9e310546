// Package release says which Linux this is.
package release

import (
	"strconv"
	"strings"

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
	numbers := strings.FieldsFunc(Name(), func(r rune) bool { return r < '0' || r > '9' })
	if len(numbers) < 2 {
		return false
	}
	m, _ := strconv.Atoi(numbers[0])
	n, _ := strconv.Atoi(numbers[1])
	return m > major || m == major && n >= minor
}
