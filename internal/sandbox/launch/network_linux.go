package launch

import (
	"errors"
	"io/fs"
	"syscall"

	"claudebox/internal/diag"
	"claudebox/internal/linux/proctree"
	"claudebox/internal/linux/within"
	"claudebox/internal/network"
	"claudebox/internal/network/netns"
	"claudebox/internal/sandbox/storetree"
)

// connect gives a sandbox that waits at its gate its network, its store and the
// last of its mounts. What keeps it from that ends the sandbox, and the gate is
// never opened.
func (l Launch) connect(child *sandbox) (*network.Inet, error) {
	if child.gate.outside == nil {
		return nil, nil
	}
	var inet *network.Inet
	var err error
	if l.OwnNetwork() {
		inet, err = l.makeNetwork(child)
	}
	if err == nil {
		err = child.tree.await()
	}
	if err == nil && l.Lay {
		err = l.layMounts(child)
	}
	if err == nil {
		err = limitProcesses(child.pid, l.processes())
	}
	if err == nil {
		err = child.gate.open()
	}
	if err == nil || errors.Is(err, network.ErrGone) || errors.Is(err, within.ErrGone) || errors.Is(err, syscall.EPIPE) {
		return inet, nil // who is gone says why when it is waited for
	}
	if init := proctree.Init(child.pid); !l.OwnPIDs && init != 0 {
		syscall.Kill(init, syscall.SIGKILL) // it would outlive bwrap
	}
	syscall.Kill(child.pid, syscall.SIGKILL)
	if child.post.lastSignal() != 0 {
		return inet, nil // somebody ends it, and so nothing of it works any more
	}
	if errors.Is(err, storetree.ErrGone) {
		return nil, l.whyGone(child, err)
	}
	child.reap()
	return nil, err
}

// makeNetwork makes what is claudebox's own in the sandbox's network. The
// result is nil in a tier that is not connected.
func (l Launch) makeNetwork(child *sandbox) (inet *network.Inet, err error) {
	if l.Tier == ConnectedTier {
		if inet, err = network.Open(child.pid, l.Pasta); err != nil {
			return inet, err
		}
	}
	if l.Tier == ConnectedTier && l.Attach == nil {
		return inet, nil
	}
	ns, err := netns.Of(child.pid)
	if errors.Is(err, fs.ErrNotExist) {
		return inet, network.ErrGone
	}
	if err == nil {
		err = ns.RaiseLoopback()
	}
	if err == nil && l.Attach != nil {
		err = l.Attach(ns)
	}
	return inet, err
}

// disconnect ends the network, and tells when it was cut while the agent ran.
func disconnect(inet *network.Inet, ended error) error {
	if inet == nil {
		return ended
	}
	if err := inet.Close(); err != nil {
		return &diag.Error{Op: "keep the sandbox's network closed", Err: err, Remedy: "start again: the network was cut, and the agent went on without"}
	}
	return ended
}

// CheckNetwork sees what keeps the tier's network from being made, before
// anything is started. The other tiers need nothing.
func (l Launch) CheckNetwork() error {
	if l.Tier != ConnectedTier {
		return nil
	}
	if err := network.CheckTool(l.Pasta); err != nil {
		return err
	}
	return network.CheckTun()
}
