package session

import (
	"path/filepath"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/profiledir"
	"claudebox/internal/state"
)

// InstanceDir is the folder that is kept for the project the caller stands in,
// whether it is there yet or not.
func InstanceDir(c Caller, o Options) (string, error) {
	facts, err := host.Detect()
	if err != nil {
		return "", err
	}
	ref := profileRef(facts, o)
	prof, _, err := profile.Load(ref, profiledir.New(facts, c.Manifest))
	if err != nil {
		return "", err
	}
	folders := profiledir.FoldersOf(facts, c.Manifest)
	switch prof.State {
	case profile.StateShared:
		return filepath.Join(state.Folder(folders.Home), string(state.Shared)), nil
	case profile.StateEphemeral:
		return "", diag.Errorf("find the instance of this project", "use `state: project` in the profile",
			"by profile %s it is made for each session and removed after it", prof.Name)
	}
	s := Session{Facts: facts, folders: folders}
	found, err := s.openProject(plan.Plan{Project: string(prof.Project)}, o, looking)
	return filepath.Join(state.Folder(folders.Home), state.ID(found.Root)), err
}
