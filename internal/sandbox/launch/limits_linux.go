package launch

import (
	"errors"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/proctree"
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

// processes returns the limit on processes inside; 0: there is none.
func (l Launch) processes() uint64 {
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

// limit puts the processes of a sandbox under its limits. It waits until bwrap is at
// the gate: from then on no process in the sandbox starts another.
func (r Runner) limit(child *sandbox) error {
	if !r.Lay { // else lay has waited for it
		if err := child.gate.reached(); err != nil {
			return err
		}
	}
	return r.Limit(proctree.All(child.pid))
}

// limitProcesses sets the limit on processes of a sandbox that waits at its gate, or
// will; 0: no limit. A process that bwrap is just forking has inherited the old limit
// already but is not yet listed as a child. So it first waits until bwrap has reported
// that process 1 inside exists (bwrap(1), --json-status-fd), or has ended.
func (s *sandbox) limitProcesses(most uint64) error {
	if most == 0 {
		return nil
	}
	if err := s.reported(); err != nil {
		return err
	}
	return limitProcesses(s.pid, most)
}

// reported waits until bwrap has written something to its status pipe, or has ended.
func (s *sandbox) reported() error {
	raw, err := s.status.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(fd uintptr) {
		said := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		err = uninterrupted(func() error { _, err := unix.Poll(said, -1); return err })
	})
	return errors.Join(failed, err)
}

// limitProcesses sets the limit of a process and of all its descendants. Each gets it
// before its children are listed, so that children which it starts later inherit it.
func limitProcesses(bwrap int, most uint64) error {
	limit := unix.Rlimit{Cur: most, Max: most}
	for list := []int{bwrap}; len(list) > 0; list = list[1:] {
		if err := unix.Prlimit(list[0], unix.RLIMIT_NPROC, &limit, nil); err != nil && !errors.Is(err, unix.ESRCH) {
			return &diag.Error{Op: "limit the processes of the sandbox", Err: err}
		}
		list = append(list, proctree.Children(list[0])...)
	}
	return nil
}
