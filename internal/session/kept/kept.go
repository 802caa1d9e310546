// Package kept finds what is kept for the project that a caller stands in: its folder, the agent's git folders, the
// branches. It serves commands that are no launch.
package kept

import (
	"path/filepath"

	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/plan"
	"claudebox/internal/session/folders"
	"claudebox/internal/session/planning"
	"claudebox/internal/workspace/handover"
	"claudebox/internal/workspace/project"
)

// Move gives the project that the caller stands in what was kept for it where it was before.
func Move(c planning.Caller, o planning.Options, id string) (said string, err error) {
	found, dir, err := find(c, o)
	if err != nil {
		return "", err
	}
	from, err := state.Move(filepath.Dir(filepath.Dir(dir)), id, found.InstanceRoot)
	if err != nil {
		return "", err
	}
	said = "what was kept for " + diag.Name(from) + " is kept for " + diag.Name(found.InstanceRoot) + " now"
	if HasWaiting(dir) {
		said += "; what had not crossed from the agent's git folder is in " + filepath.Join(dir, handover.Folder)
	}
	return said, nil
}

// Folder is the folder that is kept for the project the caller stands in, whether it is there yet or not.
func Folder(c planning.Caller, o planning.Options) (string, error) {
	_, dir, err := find(c, o)
	return dir, err
}

// find is the project that the caller stands in, and the folder that is kept for it.
func find(c planning.Caller, o planning.Options) (found project.Project, dir string, err error) {
	asked, prof, err := planning.LookUpProfile(c, o)
	if err != nil {
		return found, "", err
	}
	of := planning.Planned{Plan: plan.Plan{Project: string(prof.Project)}}
	found, err = folders.HostOf(asked, of).Project()
	if err != nil {
		return found, "", err
	}
	dir, err = state.Dir(asked.Folders.Home, state.Kind(prof.State), found.InstanceRoot)
	return found, dir, err
}
