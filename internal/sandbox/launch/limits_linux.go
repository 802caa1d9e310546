package launch

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/proctree"
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
	if tasks := l.Plan.Limits.Tasks; tasks > 0 {
		limit = uint64(tasks)
	}
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &own) == nil {
		limit = min(limit, own.Cur)
	}
	return limit
}

// hold puts the processes of a sandbox under its limits. At the gate nobody in
// it starts another.
func (r Runner) hold(child *sandbox) error {
	if !r.Lay { // else it was waited for
		if err := child.gate.reached(); err != nil {
			return err
		}
	}
	return r.Hold(proctree.All(child.pid))
}

// limitProcesses limits the processes of a sandbox that waits at its gate, or is
// on its way there; 0: not at all. A process that bwrap is just starting has bwrap's
// old limits already and is no child of it yet: so bwrap has to have said first that
// its process 1 is there (bwrap(1), --json-status-fd), or be gone.
func (s *sandbox) limitProcesses(most uint64) error {
	if most == 0 {
		return nil
	}
	if s.status != nil { // else it is tried, and runs nothing of an agent's
		if err := s.reported(); err != nil {
			return err
		}
	}
	return limitProcesses(s.pid, most)
}

// reported returns when bwrap has said something, or is gone.
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

// limitProcesses limits a process and those it has started. Each is limited before
// its children are listed: what it starts later inherits the limit.
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
