package session

import (
	"claudebox/internal/agent/state"
	"claudebox/internal/host"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/workspace/project"
)

// InstanceDir is the folder that is kept for the project the caller stands in,
// whether it is there yet or not.
func InstanceDir(c Caller, o Options) (string, error) {
	_, dir, err := keptFor(c, o)
	return dir, err
}

// keptFor is the project that the caller stands in, and the folder that is kept
// for it.
func keptFor(c Caller, o Options) (found project.Project, dir string, err error) {
	facts, err := host.Detect()
	if err != nil {
		return found, "", err
	}
	s := newSession(newCall(c, o, looking, facts))
	prof, _, err := profile.Load(s.profileRef(), c.profiles(facts))
	if err != nil {
		return found, "", err
	}
	found, err = s.openProject(plan.Plan{Project: string(prof.Project)})
	if err != nil {
		return found, "", err
	}
	dir, err = state.Dir(s.folders.Home, state.Kind(prof.State), found.Root)
	return found, dir, err
}
