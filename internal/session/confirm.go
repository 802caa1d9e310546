package session

import (
	"slices"

	"claudebox/internal/linux/pathname"
)

// Confirm says when the user is asked about the session, as `confirm` in a profile does. A file that an agent could
// have written cannot say "never": the user is asked unless exactly its plan was approved.
func (in inputs) Confirm() string {
	if in.Plan.Confirm == "never" && in.agentCouldWrite() {
		return "changed"
	}
	return in.Plan.Confirm
}

// PlanDigest is what the user approves besides what enters: the digest of a plan that an agent could have written. It
// is empty for any other plan.
func (in inputs) PlanDigest() string {
	if !in.agentCouldWrite() {
		return ""
	}
	return in.Plan.Digest()
}

// agentCouldWrite reports whether the plan is, or was made of, a file that an agent could have written, in this project
// or another: one named by a path outside of the folders that are searched for profiles and plans. Those no sandbox may
// change, nor what links in them lead to.
func (in inputs) agentCouldWrite() bool {
	return slices.ContainsFunc(in.OwnFiles, func(file string) bool {
		return !slices.ContainsFunc(in.Folders.Search(), func(dir string) bool { return pathname.Below(file, dir) })
	})
}
