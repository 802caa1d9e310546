package planning

import (
	"slices"

	"claudebox/internal/linux/pathname"
	"claudebox/internal/profile/profiledir"
)

// Confirm says when the user is asked about the session, as `confirm` in a profile does. A file that an agent could
// have written cannot say "never": the user is asked unless exactly its plan was approved.
func (p Planned) Confirm(own profiledir.Folders) string {
	if p.Plan.Confirm == "never" && p.agentCouldWrite(own) {
		return "changed"
	}
	return p.Plan.Confirm
}

// PlanDigest is what the user approves besides what enters: the digest of a plan that an agent could have written. It
// is empty for any other plan.
func (p Planned) PlanDigest(own profiledir.Folders) string {
	if !p.agentCouldWrite(own) {
		return ""
	}
	return p.Plan.Digest()
}

// agentCouldWrite reports whether the plan is, or was made of, a file that an agent could have written, in this project
// or another: one named by a path outside of the folders that are searched for profiles and plans. Those no sandbox may
// change, nor what links in them lead to.
func (p Planned) agentCouldWrite(own profiledir.Folders) bool {
	return slices.ContainsFunc(p.OwnFiles, func(file string) bool {
		return !pathname.BelowAny(file, own.Search())
	})
}
