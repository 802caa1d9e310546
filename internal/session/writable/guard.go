package writable

import (
	"path"
	"path/filepath"
	"slices"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/identity"
	"claudebox/internal/linux/mountinfo"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/within"
	"claudebox/internal/session/guarded"
	"claudebox/internal/session/lending"
	"claudebox/internal/session/live"
	"claudebox/internal/workspace/cover"
	"claudebox/internal/workspace/guard"
	"claudebox/internal/workspace/hostrun"
	"claudebox/internal/workspace/project"
	"claudebox/internal/workspace/survey"
)

// ownInside reports whether the agent has a folder of its own in the place of one that a path of the host lies in: what
// appears there is the user's.
func ownInside(folder guarded.Folder, at string) bool {
	return slices.ContainsFunc(folder.Mounts, func(m project.Mount) bool {
		return m.Mode == project.Own && pathname.Below(at, m.Path)
	})
}

// guardRequest says what is held back of what the agent makes in a folder.
func (f *Folders) guardRequest(folder guarded.Folder, session string) guard.Request {
	held, seen := f.Kept.Held(folder.Project), folder.Seen
	var folders []string
	for _, f := range seen.Folders() {
		folders = append(folders, f.Rel)
	}
	at := func(rel string) string { return filepath.Join(folder.Path, rel) }
	unwritable := func(rel string) bool {
		return slices.ContainsFunc(folder.Mounts, func(m project.Mount) bool {
			return m.Path == at(rel) && (m.Mode == project.Inner || m.Mode == project.ReadOnly)
		})
	}
	only := func(list []string) []string { // those that no agent can write to
		return slices.DeleteFunc(slices.Clone(list), func(rel string) bool { return !unwritable(rel) })
	}
	bare := only(seen.Bare)
	return f.withUsers(folder, guard.Request{
		Path: folder.Path, Held: held, Session: session, Stops: guard.Stops(f.Kept.Own), Lock: f.Kept.Own,
		Copies: f.Kept.Beside(folder.Project), Folders: folders,
		Skipped: hostrun.Filling(), Git: seen.Git, Bare: bare,
		Users: slices.Concat(bare, slices.DeleteFunc(only(seen.Git), func(rel string) bool {
			return !lending.IsFolder(at(rel)) // a file leads elsewhere when it is moved
		})),
		Known: func(rel string, isLink bool) bool {
			below := func(at string) bool { return at == rel || !isLink && pathname.Below(at, rel) }
			return ownInside(folder, at(rel)) || slices.ContainsFunc(folder.Tracked, below) ||
				slices.ContainsFunc(seen.Files, func(f survey.File) bool { return below(f.Rel) }) ||
				slices.ContainsFunc(seen.Skipped, below)
		},
		Copy: f.Git.Copy,
		Ask: func() map[string]bool {
			names := map[string]bool{}
			for _, listed := range f.Git.Listed(hostrun.Unasked) {
				if rel, in := pathname.Cut(listed, folder.Path); in {
					names[rel] = true
				}
			}
			return names
		},
		Told: func(rel string) {
			f.Events.Add(live.Event{Kind: live.Held, What: at(rel)})
			if path.Base(rel) != ".git" { // git takes that for a repository as it is
				f.Git.Exclude(at(rel))
			}
		},
		Apart: f.Alarm.Apart, Lost: f.Alarm.Unguarded,
	})
}

// withUsers adds what becomes of the repositories that the user makes in a folder.
func (f *Folders) withUsers(folder guarded.Folder, r guard.Request) guard.Request {
	at := func(rel string) string { return filepath.Join(folder.Path, rel) }
	r.Cover = func(rel string) error { return f.cover(at(rel)) }
	r.IsAlone = f.livesAlone
	r.CoverCopy = func(in []int, name string, isFolder bool) error {
		var covers []within.Cover
		for _, fd := range in {
			c := within.Cover{In: fd, Path: name, ReadOnly: true}
			if isFolder {
				c.With = within.Folder
			}
			covers = append(covers, c)
		}
		return within.Lay(f.Process, covers, nil)
	}
	r.Sees, r.Template = f.sees, f.Template
	r.Unrenewed = func(rel string, err error) { f.Alarm.Unrenewed(at(rel), err) }
	r.Renewed = func(rel string, id identity.ID) {
		for _, review := range f.reviews {
			review.KeepUsers(id)
		}
		f.notes.Go(func() { // it takes a program
			remotes := f.Git.Remotes(at(rel))
			for _, review := range f.reviews {
				review.KeepRemotes(id, remotes)
			}
		})
	}
	r.PutAside = func(rel string, names []string) { f.Alarm.PutAside(at(rel), names) }
	r.HeldUsers = func(rel string) { f.Alarm.HeldBack(at(rel)) }
	r.Kept = func(rel, kept string) { f.Alarm.Rewritten(at(rel), kept) }
	return r
}

// cover covers a repository of the user's wherever the sandbox has it. A file only says where the repository is, and
// covers itself.
func (f *Folders) cover(at string) error {
	views, err := mountinfo.Seen(f.Process, at)
	if err != nil {
		return err
	}
	isFolder := lending.IsFolder(at)
	for _, v := range views {
		c := cover.File{Path: v.At, Folder: isFolder}
		if isFolder {
			c.Remake = remakes[project.Hidden]
		} else if v.ReadOnly {
			continue
		}
		if err := cover.Now(f.Process, c); err != nil {
			return err
		}
	}
	return nil
}

// sees reports whether an agent may have what is at a path, or make it there: also what claudebox keeps for it, which
// the agent has elsewhere.
func (f *Folders) sees(at string) bool {
	isHeld := func(given guarded.Folder) bool { return pathname.Below(at, f.Kept.Held(given.Project)) }
	if slices.ContainsFunc(f.List, isHeld) || beneath.LeadsOrClean(at) != at ||
		pathname.Below(at, beneath.LeadsOrClean(f.Kept.Own)) {
		return true
	}
	views, err := mountinfo.Seen(f.Process, at)
	return err != nil || len(views) > 0
}
