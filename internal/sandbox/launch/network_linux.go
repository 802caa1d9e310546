package launch

import (
	"errors"
	"syscall"

	"claudebox/internal/linux/proctree"
	"claudebox/internal/linux/within"
	"claudebox/internal/network/helper"
	"claudebox/internal/sandbox/storetree"
)

// connect gives a sandbox that waits at its gate its network, its store and the
// last of its mounts. What keeps it from that ends the sandbox, and the gate is
// never opened.
func (r Runner) connect(child *sandbox) error {
	if child.gate.outside == nil {
		return nil
	}
	var err error
	if r.Network != nil {
		err = r.Network.Make(child.pid)
	}
	if err == nil {
		err = done(r.Before)
	}
	if err == nil && r.Network != nil {
		err = r.Network.Attach()
	}
	if err == nil {
		err = child.tree.await()
	}
	if err == nil && r.Lay {
		err = r.layMounts(child)
	}
	if err == nil {
		err = done(r.Laid)
	}
	if err == nil {
		err = child.limitProcesses(r.processes())
	}
	if err == nil && r.Held {
		err = r.hold(child)
	}
	if err == nil {
		err = child.gate.open()
	}
	if err == nil || errors.Is(err, helper.ErrGone) || errors.Is(err, within.ErrGone) || errors.Is(err, syscall.EPIPE) {
		return nil // who is gone says why when it is waited for
	}
	if init := proctree.Init(child.pid); !r.OwnPIDs && init != 0 {
		syscall.Kill(init, syscall.SIGKILL) // it would outlive bwrap
	}
	syscall.Kill(child.pid, syscall.SIGKILL)
	if child.post.lastSignal() != 0 {
		return nil // somebody ends it, and so nothing of it works any more
	}
	if errors.Is(err, storetree.ErrGone) {
		return r.whyGone(child, err)
	}
	child.reap()
	return err
}

// done does what is to be done, if anything is.
func done(do func() error) error {
	if do == nil {
		return nil
	}
	return do()
}
