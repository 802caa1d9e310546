package gitdir

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Found is what [Find] saw: names, nothing of what they hold. The zero value
// is no repository.
type Found struct {
	Worktree string // folder with an entry .git
	Bare     bool   // the folder is itself a git folder
}

// Find looks for .git in start and above as git does, up to the border of
// the file system. A home folder under git (dotfiles) is not the project of
// what lies in it, so the search ends there.
func Find(start, home string) (Found, error) {
	device, err := deviceOf(start)
	if err != nil {
		return Found{}, &os.PathError{Op: "look at", Path: start, Err: err}
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if at, err := deviceOf(dir); err != nil || at != device || dir == home && dir != start {
			return Found{}, nil
		}
		if exists(dir + "/.git") {
			return Found{Worktree: dir}, nil
		}
		if Looks(dir) {
			return Found{Worktree: dir, Bare: true}, nil
		}
		if dir == "/" {
			return Found{}, nil
		}
	}
}

// Looks reports whether a folder has what git takes for a git folder.
func Looks(dir string) bool {
	return exists(dir+"/HEAD") && exists(dir+"/objects") && exists(dir+"/refs")
}

func deviceOf(path string) (uint64, error) {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	return uint64(st.Dev), err
}

func exists(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil
}
