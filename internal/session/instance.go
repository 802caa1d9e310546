package session

import (
	"claudebox/internal/agent/state"
	"claudebox/internal/host"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
)

// InstanceDir is the folder that is kept for the project the caller stands in,
// whether it is there yet or not.
func InstanceDir(c Caller, o Options) (string, error) {
	facts, err := host.Detect()
	if err != nil {
		return "", err
	}
	s := newSession(newCall(c, o, looking, facts))
	prof, _, err := profile.Load(s.profileRef(), c.profiles(facts))
	if err != nil {
		return "", err
	}
	found, err := s.openProject(plan.Plan{Project: string(prof.Project)}, o, looking)
	if err != nil {
		return "", err
	}
	return state.Dir(s.folders.Home, state.Kind(prof.State), found.Root)
}
