// Package nofile remembers the limit of open files that this process was
// started with.
//
// Package syscall raises the soft limit when it is initialised, and keeps the
// old one to itself. This package is initialised before it: among packages
// that are ready the first by import path is next (The Go Programming Language
// Specification, "Program initialization"), and this one imports nothing.
// Hence its own system call.
package nofile

// Limit is a limit of getrlimit(2).
type Limit struct{ Soft, Hard uint64 }

// AtStart is the limit. It is zero when the kernel did not tell.
var AtStart = atStart()

func atStart() Limit {
	var l Limit
	if getrlimit(nofile, &l) != 0 {
		return Limit{}
	}
	return l
}

// nofile is RLIMIT_NOFILE.
const nofile = 7

//go:noescape
func getrlimit(resource uintptr, limit *Limit) (result int)
