package session

import (
	"errors"
	"path/filepath"

	"claudebox/internal/diag"
	"claudebox/internal/workspace/guard"
	"claudebox/internal/workspace/handover"
)

// GitPlace says how a repository of the caller's project and the agent's own git folder for it stand.
type GitPlace = handover.Status

// Choice is what the caller wants of a branch that moved on both sides.
type Choice = handover.Choice

// See [handover.Choice].
const (
	Take = handover.Take
	Drop = handover.Drop
)

// GitPlaces hands over what waits between the project's repositories and the agent's, if it can be, and says how they
// stand then.
func GitPlaces(c Caller, o Options) ([]GitPlace, error) {
	request, err := settling(c, o)
	if err != nil {
		return nil, err
	}
	list, err := handover.Settle(request)
	return list, unsettled(err)
}

// ChooseBranch settles what becomes of a branch that moved on both sides, and returns what still waits there.
func ChooseBranch(c Caller, o Options, branch string, choice Choice) (GitPlace, error) {
	request, err := settling(c, o)
	if err != nil {
		return GitPlace{}, err
	}
	after, err := handover.Choose(request, branch, choice)
	if errors.Is(err, handover.ErrNoChoice) {
		return after, &diag.Error{
			Op: "settle " + diag.Name(branch), Err: err, Remedy: "see `claudebox git` for those that did",
		}
	}
	return after, unsettled(err)
}

func unsettled(err error) error {
	if err == nil {
		return nil
	}
	return diag.Wrap("hand over between your git folder and the agent's", err, "see whether `git fsck` and `git status` work")
}

// settling makes the request about the caller's project.
func settling(c Caller, o Options) (made handover.Request, err error) {
	found, dir, err := keptFor(c, o)
	if err != nil {
		return made, err
	}
	manifest, err := readManifest(c.Manifest)
	if err != nil {
		return made, err
	}
	if made, err = handoverOf(manifest.Tools, found); err != nil {
		return made, err
	}
	made.Places = found.Places
	for i := range made.Places {
		made.Places[i].Folder = filepath.Join(dir, handover.Folder, handover.Name(made.Places[i].Outer))
	}
	return made, nil
}

// HasWaiting reports whether commits, repositories or the like wait in an instance, by its folder.
func HasWaiting(instance string) bool {
	return handover.HasWaiting(instance) || guard.HasWaiting(filepath.Join(instance, guard.Folder))
}
