package session

import (
	"claudebox/internal/agent/state"
	"claudebox/internal/host"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/profile/profiledir"
)

// InstanceDir is the folder that is kept for the project the caller stands in,
// whether it is there yet or not.
func InstanceDir(c Caller, o Options) (string, error) {
	facts, err := host.Detect()
	if err != nil {
		return "", err
	}
	ref := profileRef(facts, o)
	prof, _, err := profile.Load(ref, c.profiles(facts))
	if err != nil {
		return "", err
	}
	s := Session{Facts: facts, folders: profiledir.FoldersOf(facts, c.Manifest)}
	found, err := s.openProject(plan.Plan{Project: string(prof.Project)}, o, looking)
	if err != nil {
		return "", err
	}
	return state.Dir(s.folders.Home, state.Kind(prof.State), found.Root)
}
