package launch

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// mostProcesses is how many processes and threads a sandbox may have: some
// times what a large build or a browser takes, and a fraction of what brings a
// machine down.
const mostProcesses = 16384

// CountsProcesses reports whether the kernel counts the processes of a user
// namespace by themselves. One before 5.14 counts all of a user's, so that a
// limit inside would depend on what runs outside.
func CountsProcesses() bool {
	var name unix.Utsname
	var major, minor int
	if unix.Uname(&name) != nil {
		return false
	}
	_, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor)
	return err == nil && (major > 5 || major == 5 && minor >= 14)
}

// processes is the limit on processes inside; 0: there is none.
func (l Launch) processes() uint64 {
	if !l.OwnPIDs && !l.OwnNetwork() || !CountsProcesses() {
		return 0
	}
	limit := uint64(mostProcesses)
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &own) == nil {
		limit = min(limit, own.Cur)
	}
	return limit
}
