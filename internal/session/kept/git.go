package kept

import (
	"errors"
	"path/filepath"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/session/crossing"
	"claudebox/internal/session/guarded"
	"claudebox/internal/session/planning"
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

// Git hands over what waits between the project's repositories and the agent's, if it can be, and says how they
// stand then.
func Git(c planning.Caller, o planning.Options) ([]GitPlace, error) {
	request, path, dir, err := settling(c, o)
	if err != nil {
		return nil, err
	}
	list, _ := handover.Settle(request) // what failed is among what waits
	if len(list) > 0 {
		list[0].Waits = append(list[0].Waits, heldBack(path, dir, request.Tools)...)
	}
	return list, nil
}

// heldBack lists the repositories of the agent's in a project that are not the user's yet. dir is what is kept for it.
func heldBack(path, dir string, tools handover.Tools) (waits []handover.Wait) {
	root, err := beneath.Open(path)
	if err != nil {
		return nil // the project was there a moment ago
	}
	defer root.Close()
	home := filepath.Dir(filepath.Dir(dir))
	for _, held := range []string{guard.Held(home, path), filepath.Join(path, ".git", guarded.HeldInGit)} {
		for _, session := range guard.Sessions(held) {
			for _, r := range guard.Repositories(root, session) {
				text := "it becomes yours when a session here ends"
				made := handover.Made{Outer: root.Join(r.Rel), At: r.At}
				made.Folder = filepath.Join(dir, handover.Folder, handover.Name(made.Outer))
				if why := made.Refusal(tools); why != "" {
					text = "until it changes: " + why
				}
				waits = append(waits, handover.Wait{
					About: filepath.Dir(r.Rel), Text: "a repository that the agent made is held back: " + text,
				})
			}
		}
	}
	return waits
}

// Choose settles what becomes of a branch that moved on both sides, and returns what still waits there.
func Choose(c planning.Caller, o planning.Options, branch string, choice Choice) (GitPlace, error) {
	request, _, _, err := settling(c, o)
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
	return diag.Wrap("hand over between your git folder and the agent's", err, "see `claudebox git`, and whether `git status` works")
}

// settling makes the request about the caller's project. It returns the project's path, too, and the folder that is
// kept for it.
func settling(c planning.Caller, o planning.Options) (made handover.Request, path, dir string, err error) {
	found, dir, err := find(c, o)
	if err != nil {
		return made, "", "", err
	}
	manifest, err := planning.ReadManifest(c.Manifest)
	if err != nil {
		return made, "", "", err
	}
	if made, err = crossing.Request(manifest.Tools, found); err != nil {
		return made, "", "", err
	}
	made.Places = found.Places
	for i := range made.Places {
		made.Places[i].Folder = filepath.Join(dir, handover.Folder, handover.Name(made.Places[i].Outer))
	}
	return made, found.Path, dir, nil
}

// HasWaiting reports whether commits, repositories or the like wait in an instance, by its folder.
func HasWaiting(instance string) bool {
	return handover.HasWaiting(instance) || guard.HasWaiting(filepath.Join(instance, guard.FolderBefore))
}

// Forget removes what is held back of a project that is gone. home is claudebox's own folder.
func Forget(home, project string) { guard.Forget(home, project) }
