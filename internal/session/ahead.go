package session

import (
	"golang.org/x/sys/unix"

	"claudebox/internal/launch"
	"claudebox/internal/plan"
	"claudebox/internal/plancache"
	"claudebox/internal/resolve"
)

// ahead is the bwrap that was begun on the strength of what the last launch by
// the plan needed.
type ahead struct {
	plans plancache.Cache // where the plan is kept; the zero one keeps nothing
	bwrap *launch.Ahead   // nil: none was begun
}

// beginAhead begins bwrap while the session is being prepared, see
// [launch.Ahead]: for the plan's own agent, in tier full, where nobody is asked
// and the standard descriptors stay what they are. The project's placeholders,
// which bwrap gets too, have to be there by then.
func (s *Session) beginAhead(p plan.Plan, o Options, why Purpose) error {
	a := &s.ahead
	if why.Look || len(why.Command) > 0 || p.Network.Tier != "full" {
		a.plans = plancache.Cache{} // nothing is to be learnt from such a launch either
		return nil
	}
	var last launch.Needs
	asked := !o.Yes && p.Confirm != "never"
	if asked || !launch.CanOwnPIDs() || anyIsFile() || !a.plans.Beside(&last) {
		return nil
	}
	for _, step := range []func() error{s.listen, s.holdGiven} {
		if err := step(); err != nil {
			return err
		}
	}
	a.bwrap = launch.Begin(plan.ToolPath(p, resolve.ToolBwrap), p.Network.Tier, last, o.Words)
	return nil
}

// anyIsFile tells whether a standard descriptor is a file. The agent gets a
// copy or a pipe in its place later, see [copyInput] and [carryOutput].
func anyIsFile() bool {
	for fd := range 3 {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG {
			return true
		}
	}
	return false
}
