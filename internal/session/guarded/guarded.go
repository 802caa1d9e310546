// Package guarded says how a folder that the agent may change is mounted: what the host obeys in it is protected, what
// is secret is hidden, git folders are the agent's own, and what appears there can be held back.
package guarded

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session/lending"
	"claudebox/internal/workspace/guard"
	"claudebox/internal/workspace/handover"
	"claudebox/internal/workspace/project"
)

// Places are the folders in which claudebox keeps what belongs to guarded folders.
type Places struct {
	Own      string // claudebox's own folder
	Instance string // the instance's
	// Rehearsed is whether Own is the folder of a check, which lies in the user's cache: inside that is another one.
	Rehearsed bool
}

// Folder is a folder that the agent may change: the project, or one that is
// mounted read-write beside it. The host's git obeys what is in such a folder, so
// each is guarded as the project is.
type Folder struct {
	project.Project
	At string // where it lies inside
}

// In returns where a path of the folder lies in the sandbox.
func (f Folder) In(path string) string { return f.At + strings.TrimPrefix(path, f.Path) }

// IsMoved reports whether the folder lies at another path inside than on the host.
func (f Folder) IsMoved() bool { return f.At != f.Path }

// Protection makes the mounts that keep the agent from changing what the host obeys in a folder, and from reading
// what is hidden there; and those of git folders, of which the agent has its own.
func (p Places) Protection(folder project.Project) (made launch.Part) {
	empty := lending.EmptyFolder(p.Own)
	for _, m := range folder.Mounts {
		if IsDirenv(folder, m) && m.Mode == project.Own {
			made.Mount(launch.Mount{
				Kind: plan.Bind, Source: filepath.Join(p.Instance, DirenvFolder(folder)), Destination: m.Path,
				Why: plan.Base,
			})
			continue
		}
		made.Mount(Mount(m, empty, handover.Place{Folder: p.Place(m.Path)}.Inner()))
	}
	made.Mount(Objects(folder)...)
	if slices.ContainsFunc(folder.Mounts, HidesFolder) {
		made.StandIns = append(made.StandIns, launch.StandIn{Path: empty, Dir: true})
	}
	for _, s := range folder.StandIns {
		standIn := launch.StandIn{Path: s.Root + "/" + s.Rel, Dir: s.Dir}
		made.StandIns = append(made.StandIns, standIn)
	}
	return made
}

// IsDirenv reports whether a mount is that of direnv's folder of a project, where that is not tracked.
func IsDirenv(folder project.Project, m project.Mount) bool {
	return m.Path == folder.Path+"/.direnv" && m.Dir && (m.Mode == project.ReadOnly || m.Mode == project.Own)
}

// WithOwnDirenv gives direnv inside a folder of its own in the place of the user's: what it makes there leads into the
// store inside, and would lead nowhere outside.
func WithOwnDirenv(opened project.Project) project.Project {
	at := slices.IndexFunc(opened.Mounts, func(m project.Mount) bool { return IsDirenv(opened, m) })
	if at < 0 {
		return opened
	}
	direnv := opened.Mounts[at].Path
	opened.Mounts = slices.Clone(opened.Mounts)
	opened.Mounts[at].Mode = project.Own
	inIt := func(path string) bool { return path != direnv && pathname.Below(path, direnv) }
	opened.Mounts = slices.DeleteFunc(opened.Mounts, func(m project.Mount) bool { return inIt(m.Path) })
	opened.Places = slices.DeleteFunc(slices.Clone(opened.Places), func(p handover.Place) bool { return inIt(p.Outer) })
	return opened
}

// DirenvFolder is the folder of the instance that is direnv's of a project; worktrees share an instance.
func DirenvFolder(folder project.Project) string { return "direnv-" + handover.Name(folder.Path) }

// Objects mounts the objects of a folder's repositories, read-only.
func Objects(folder project.Project) (list []launch.Mount) {
	for _, place := range folder.Places {
		list = append(list, ObjectsOf(place)...)
	}
	return list
}

// ObjectsOf is [Objects] for one repository.
func ObjectsOf(place handover.Place) (list []launch.Mount) {
	mounts := []handover.Mount{place.Objects()}
	if contents, is := place.Contents(); is {
		mounts = append(mounts, contents)
	}
	for _, m := range mounts {
		list = append(list, launch.Mount{
			Kind: plan.ROBind, Source: m.Source, Destination: m.Destination, Open: true, Why: launch.WhyObjects,
		})
	}
	return list
}

// Place is claudebox's folder for what belongs to a git folder of the user's.
func (p Places) Place(outer string) string {
	return filepath.Join(p.Instance, handover.Folder, handover.Name(outer))
}

// Mount mounts a path of the project over itself, in the mode of m. empty is mounted over a hidden folder, inner
// over a git folder.
func Mount(m project.Mount, empty, inner string) launch.Mount {
	b := launch.Mount{Kind: plan.Bind, Source: m.Path, Destination: m.Path, Open: true, Why: m.Why}
	switch m.Mode {
	case project.Inner:
		b.Source = inner
	case project.Own:
		b.Source = path.Dir(inner) + "/folder"
	case project.ReadOnly:
		b.Kind = plan.ROBind
	case project.Made:
		b.Kind, b.Data, b.Open = plan.ROData, m.Content, false
	case project.Hidden:
		if m.Dir {
			b.Kind, b.Source = plan.ROBind, empty
			break
		}
		b.Kind, b.Open = plan.ROData, false
	}
	return b
}

// HidesFolder reports whether a mount hides a folder of the project.
func HidesFolder(m project.Mount) bool { return m.Mode == project.Hidden && m.Dir }

// Held is the folder for what the agent makes in a given folder and is held back there. It has to lie on the same
// file system: in claudebox's own folder, else in the folder's git folder.
func (p Places) Held(folder project.Project) string {
	if inGit := filepath.Join(folder.Path, ".git"); p.IsHeldInGit(folder) {
		return filepath.Join(inGit, HeldInGit)
	}
	return guard.Held(p.Own, folder.Path)
}

// Beside is a folder on the file system of a given folder that no sandbox has: claudebox's own, else the git folder.
func (p Places) Beside(folder project.Project) string {
	if p.IsHeldInGit(folder) {
		return filepath.Join(folder.Path, ".git")
	}
	return beneath.LeadsOrClean(p.Own)
}

// IsHeldInGit reports whether that is the folder's git folder.
func (p Places) IsHeldInGit(folder project.Project) bool {
	inGit, beside := filepath.Join(folder.Path, ".git"), p.Own
	if !lending.IsFolder(beside) {
		beside = filepath.Dir(beside) // it is made there
	}
	return !guard.Together(beside, folder.Path) && lending.IsFolder(inGit) && guard.Together(inGit, folder.Path)
}

// HeldInGit is the folder in a git folder of the user's for what is held back of its working tree, where that is on
// another file system than claudebox's own folder.
const HeldInGit = "claudebox-held"

// MakeHeld makes that folder, and brings there what is held back of the given folder elsewhere: by a session in a
// folder above it, or by a claudebox of before.
func (p Places) MakeHeld(folder project.Project) error {
	held, top, name := p.Held(folder), p.Beside(folder), handover.Name(folder.Path)
	inGit := filepath.Join(folder.Path, ".git")
	err := guard.Make(top, held)
	from := []string{
		filepath.Join(p.Instance, guard.FolderBefore, name), filepath.Join(inGit, HeldInGit, name),
	}
	for at := held; at != top; at = filepath.Dir(at) { // its own, too: by a launch that was killed
		from = append(from, guard.SessionsIn(at))
	}
	if err == nil {
		guard.RemoveStops(guard.Stops(p.Own), folder.Path, held)
		err = guard.Gather(guard.Stops(p.Own), folder.Path, held, from)
	}
	if err != nil {
		return diag.Wrap("make "+held, err, "make "+filepath.Dir(held)+" writable for you")
	}
	return nil
}

// RemoveHeld removes what [Places.Held] needed in a git folder of the user's, unless another session does, and what
// stopped git at links that are gone.
func (p Places) RemoveHeld(folder project.Project) {
	held := p.Held(folder)
	guard.RemoveStops(guard.Stops(p.Own), folder.Path, held)
	if filepath.Base(held) == HeldInGit {
		_ = os.Remove(guard.SessionsIn(held))
		_ = os.Remove(held)
	}
}

// HeldMount mounts that folder where the links to what is held back lead, with the link on the way there.
func (p Places) HeldMount(folder project.Project) []launch.Mount {
	list := []launch.Mount{{
		Kind: plan.Bind, Source: p.Held(folder), Destination: guard.Inside(folder.Path), Open: true,
		Why: launch.WhyHeld,
	}, {
		Kind: plan.Symlink, Source: guard.Inside(""), Destination: guard.Stops(p.Own), Why: launch.WhyHeld,
	}}
	if p.Rehearsed {
		return list[:1]
	}
	return list
}
