package writable

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session/guarded"
	"claudebox/internal/session/lending"
	"claudebox/internal/workspace/handover"
)

// Submodule is a submodule that is not checked out: the agent has a folder of its own in its place.
type Submodule struct{ Own, Outside string }

// Submodules are those of a launch; kept is the instance's folder.
func Submodules(mounts []launch.Mount, kept string) (list []Submodule) {
	kept = filepath.Join(kept, handover.Folder)
	for _, m := range mounts {
		if pathname.Below(m.Source, kept) && filepath.Base(m.Source) == "folder" {
			list = append(list, Submodule{m.Source, m.Destination})
		}
	}
	return list
}

// bringSubmodules puts what the agent made in such folders where it lies inside, to be judged there. What the user has
// put there meanwhile stays, and so does the agent's, for the next session.
func (f *Folders) bringSubmodules(list []Submodule) {
	for _, s := range list {
		there := slices.ContainsFunc(f.List, func(f guarded.Folder) bool {
			return !f.IsMoved() && pathname.Below(s.Outside, f.Path)
		})
		if !there { // it is a path inside
			continue
		}
		if left, err := os.ReadDir(s.Own); err != nil || len(left) == 0 {
			continue
		}
		// A repository there becomes one of the user's before it is where the user's git looks.
		made := f.made(s.Outside+"/.git", filepath.Dir(s.Own)+"/made")
		whole := lending.IsFolder(s.Own+"/.git") && f.isAlone() && os.Rename(s.Own+"/.git", made.At) == nil
		if err := f.move(s.Own, s.Outside); err != nil {
			f.Git.Say(s.Outside, "what was made in it is inside only: "+diag.Cause(err).Error())
			if whole {
				_ = os.Rename(made.At, s.Own+"/.git") // it is there, or kept beside
			}
			continue
		}
		if whole && !f.adopt(made)[0] {
			_ = moveTo(made.At, made.Outer) // git is to find none there, see [git.Strangers]; or it is kept
		}
	}
}

// move moves a folder to where an empty one is, also on another file system.
func (f *Folders) move(from, to string) error {
	err := moveTo(from, to)
	if !errors.Is(err, unix.EXDEV) {
		return err
	}
	if there, err := os.ReadDir(to); err != nil || len(there) > 0 {
		return cmp.Or(err, error(unix.ENOTEMPTY))
	}
	if err := f.Git.CopyPath(from, to); err != nil {
		return err
	}
	return os.RemoveAll(from)
}

// moveTo renames a folder of claudebox's, over an empty one if that is there. No link is followed: the agent of another
// session may have put one on the way to it.
func moveTo(from, to string) error {
	into, err := beneath.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	defer into.Close()
	return unix.Renameat(unix.AT_FDCWD, from, into.FD(), filepath.Base(to))
}
