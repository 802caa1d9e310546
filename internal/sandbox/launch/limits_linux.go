package launch

import (
	"errors"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/release"
)

// mostProcesses is how many processes and threads a sandbox may have by default:
// several times what a large build or a browser needs, and a fraction of what brings
// a machine down.
const mostProcesses = 16384

// CountsProcesses reports whether the kernel counts the processes of each user
// namespace separately. Linux before 5.14 counts all processes of a user together, so
// that a limit inside would depend on what runs outside.
func CountsProcesses() bool { return release.IsAtLeast(5, 14) }

// processLimit returns the limit on processes inside; 0: there is none.
func (l Launch) processLimit() uint64 {
	if !CountsProcesses() {
		return 0
	}
	limit := uint64(mostProcesses)
	if tasks := l.Plan.Limits.Tasks; tasks > 0 {
		limit = uint64(tasks)
	}
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &own) == nil {
		limit = min(limit, own.Cur)
	}
	return limit
}

// limit puts all processes of a sandbox under its limits. It is called while bwrap waits at the gate, so what they
// start later inherits them.
func (r Runner) limit(pids []int) error {
	if most := r.processLimit(); most > 0 {
		if err := setProcessLimit(pids, most); err != nil {
			return err
		}
	}
	if r.Limited {
		return r.Limit(pids)
	}
	return nil
}

// setProcessLimit sets the limit on processes of each process that has not ended.
func setProcessLimit(pids []int, most uint64) error {
	limit := unix.Rlimit{Cur: most, Max: most}
	for _, pid := range pids {
		if err := unix.Prlimit(pid, unix.RLIMIT_NPROC, &limit, nil); err != nil && !errors.Is(err, unix.ESRCH) {
			return &diag.Error{Op: "limit the processes of the sandbox", Err: err}
		}
	}
	return nil
}
