package launch

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/proctree"
	"claudebox/internal/linux/within"
	"claudebox/internal/network/helper"
	"claudebox/internal/sandbox/storetree"
)

// connect gives a sandbox that waits at its gate its network, its store, the last of its
// mounts and its limits, and opens the gate. If a step fails, it kills the sandbox, and
// the gate is never opened. It returns nil if the sandbox has ended already, or was ended
// by a signal: waiting for it then gives the reason.
func (r Runner) connect(child *sandbox) error {
	var err error
	var covers []laid
	var limits []within.Setting
	for _, step := range []struct {
		wanted bool
		do     func() error
	}{
		{r.Network != nil, func() error { return r.Network.Make(child.pid) }},
		{r.Before != nil, r.Before},
		{r.Network != nil, func() error { return r.Network.Attach() }},
		{true, func() (err error) { limits, err = userLimits(); return err }},
		{true, child.tree.await},
		{true, func() (err error) { covers, err = r.layList(); return err }},
		{true, child.gate.reached},
		{true, func() error { return prepare(limits, covers, child) }},
		{r.Laid != nil, func() error { return r.Laid(child.pid) }},
		{true, func() error { return r.limit(proctree.All(child.pid)) }},
		{true, child.gate.open},
	} {
		if step.wanted && err == nil {
			err = step.do()
		}
	}
	told := errors.Is(err, helper.ErrGone) || errors.Is(err, within.ErrGone)
	if err == nil || told || hasEnded(child.pid) {
		return nil // bwrap has ended; waiting for it gives the reason
	}
	syscall.Kill(child.pid, syscall.SIGKILL)
	if child.post.lastSignal() != 0 {
		return nil // a signal ends the sandbox; the error is only a consequence
	}
	if errors.Is(err, storetree.ErrGone) {
		return r.whyGone(child, err)
	}
	child.reap()
	return err
}

// hasEnded reports whether a child has ended. It can still be waited for.
func hasEnded(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}
