package session

import (
	"cmp"

	"golang.org/x/sys/unix"

	"claudebox/internal/plan"
	"claudebox/internal/plan/plancache"
	"claudebox/internal/sandbox/launch"
)

// ahead is the bwrap that was begun on the strength of what the last launch by
// the plan needed.
type ahead struct {
	plans plancache.Cache // where the plan is kept; the zero one keeps nothing
	needs launch.Needs    // of the last launch; the zero one begins nothing
	bwrap *launch.Ahead   // nil: none was begun
}

// expect begins bwrap for a launch by a kept plan, before that is even read: it
// takes longer to load than all the rest to be prepared, see [launch.Ahead]. So
// nothing may be made before it, nor caught. That is done for the plan's own
// agent, in tier full, where nobody is asked and the standard descriptors stay
// what they are.
func (s *Session) expect(plans plancache.Cache, o Options, why Purpose) {
	a := &s.ahead
	if why.Look || len(why.Command) > 0 {
		return // nothing is to be learnt from such a launch either
	}
	a.plans = plans
	if anyIsFile() || !launch.CanOwnPIDs() || !plans.Beside(&a.needs) {
		return
	}
	if n := a.needs; n.Held || n.Tier != cmp.Or(o.Network, n.Tier) || n.Asks && !o.Yes {
		return
	}
	a.begin(o)
}

func (a *ahead) begin(o Options) { a.bwrap = launch.Begin(a.needs, o.Words) }

// forget ends a bwrap that was begun for another launch than this.
func (a *ahead) forget() {
	a.bwrap.Discard()
	*a = ahead{plans: a.plans}
}

// expectHeld begins bwrap for a plan and project that are known by now: for a
// project whose placeholders it gets, which have to be there before. One that
// was begun for a launch of another kind is forgotten.
func (s *Session) expectHeld(p plan.Plan, o Options) error {
	a := &s.ahead
	if p.Network.Tier != "full" {
		a.plans = plancache.Cache{}
	}
	if p.Network.Tier != a.needs.Tier || p.Asks() && !o.Yes {
		a.forget()
	}
	if a.bwrap == nil && !a.needs.Held {
		return nil
	}
	for _, step := range []func() error{s.listen, s.holdGiven} {
		if err := step(); err != nil {
			return err
		}
	}
	if a.bwrap == nil {
		a.begin(o)
	}
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
