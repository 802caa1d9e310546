package session

import (
	"claudebox/internal/diag"
	"claudebox/internal/launch"
	"claudebox/internal/network"
	"claudebox/internal/plan"
	"claudebox/internal/resolve"
)

// addNetwork finds what tier inet needs, and refuses it where it cannot be
// had. The other tiers need nothing.
func (s *Session) addNetwork(h *launch.Host, p plan.Plan, _ Options, _ Purpose) error {
	if p.Network.Tier != launch.ConnectedTier {
		return nil
	}
	h.Pasta = plan.ToolPath(p, resolve.ToolPasta)
	const op, others = "use tier inet", ", or use `--network allow` or `--network none`"
	switch {
	case !h.OwnPIDs:
		return diag.Errorf(op, "run claudebox on the host, with a /proc that hides nothing (no hidepid=)"+others,
			"process 2 is not seen in /proc here, so that a `kill -9` of claudebox could leave a network behind")
	case network.ResolvConf(h.Etc.Resolv) == nil:
		return diag.Errorf(op, "connect this machine, or name a resolver in /etc/resolv.conf"+others,
			"/etc/resolv.conf names no resolver, so that no name could be looked up")
	}
	return nil
}
