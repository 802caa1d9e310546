// Package cover keeps files of a project covered in a running sandbox. A mount
// over a file goes when a program of the host replaces that file, as editors
// and `git config` do: the kernel drops it, and the agent could read the new
// secret or write the new configuration. This package sees the replacement
// and covers the file anew from outside.
//
// For that it makes mounts in the sandbox's namespace, see package within. It
// trusts nothing inside.
package cover

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/proctree"
	"claudebox/internal/linux/watch"
	"claudebox/internal/linux/within"
)

// File is a file or folder that is covered in a sandbox, by its path, which is the same inside and outside.
type File struct {
	Path   string
	Folder bool
	// Remake gives what is to cover it, by its path: of a folder, that it is empty. Nil: it covers itself, read-only.
	Remake func(path string) ([]byte, error)
}

// Watch keeps the files of one sandbox covered.
type Watch struct {
	*watch.Watch
	bwrap int
	top   string
	lost  func(path string, err error)
	files map[string]File // by path
	begun bool            // it has looked at all once
}

// errGone is said of a file that was there when the sandbox was started, and not when the watch began.
var errGone = errors.New("it is gone; if its folder was moved away, what comes in its place is not covered")

// Begin watches over the files of a sandbox that has just been started, by the process id of its bwrap. top is the
// folder below which the agent may rename folders. lost is called with each file that was found without its cover: the
// agent could read or write it. err is nil if it is covered again; else the agent still can. lost must not block. What
// was covered when the watch is closed stays so.
func Begin(bwrap int, top string, files []File, lost func(path string, err error)) *Watch {
	w := &Watch{bwrap: bwrap, top: top, lost: lost, files: map[string]File{}}
	for _, f := range files {
		w.files[f.Path] = f
	}
	if len(files) > 0 {
		w.Watch = watch.Start(watch.Request{
			Folders: w.folders, Events: unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVE_SELF | unix.IN_DONT_FOLLOW,
			See: w.look, Moved: func(dir string) { w.unwatched(dir, unix.ENOENT) }, Failed: w.unwatched,
		})
	}
	return w
}

// unwatched says that a folder cannot be watched, or not any more: one that does not exist was moved away.
func (w *Watch) unwatched(dir string, err error) {
	if !errors.Is(err, unix.ENOENT) {
		err = fmt.Errorf("watch what is covered: %w", err)
	} else {
		err = errors.New("the folder was moved away, and what comes in its place is not covered")
	}
	w.lost(cmp.Or(dir, "the project"), err)
}

// folders returns the folders of the files, and those on the way to them from the top. In the folder of a file it is
// seen that the file is replaced. Whoever moves one of the others away moves the covers with it, and what is made in
// its place has none.
func (w *Watch) folders() (list []string) {
	known := map[string]bool{}
	for name := range w.files {
		for dir := path.Dir(name); !known[dir]; dir = path.Dir(dir) {
			known[dir] = true
			list = append(list, dir)
			if !strings.HasPrefix(dir, w.top+"/") {
				break
			}
		}
	}
	return list
}

// look covers a file anew if the sandbox does not see it covered: it was replaced, or another session exchanged a
// folder while the sandbox was set up, so that the cover was laid elsewhere. Inode numbers on the host do not tell: a
// new file may have the number of the one that it replaces. An empty name stands for all files.
func (w *Watch) look(name string) {
	if name == "" {
		for name := range w.files {
			if !w.begun && inode(name) == 0 && inode(path.Dir(name)) != 0 {
				w.lost(name, errGone)
			}
			w.look(name)
		}
		w.begun = true
		return
	}
	f, ok := w.files[name]
	now := inode(name)
	if !ok || now == 0 {
		return // nothing is there; the watch reports what is made there later
	}
	process := proctree.Init(w.bwrap)
	if process == 0 || isReadOnly(process, name) {
		return // the sandbox is gone, or all is well
	}
	was, err := f.cover(process)
	switch {
	case err == nil && !was:
		w.lost(name, nil)
	case was, errors.Is(err, within.ErrGone), proctree.Init(w.bwrap) != process:
		// It was covered all the time, or nobody is left to see it.
	case inode(name) == now: // else it was replaced once more, and is looked at once more
		w.lost(name, err)
	}
}

// inode is the number of what is at a path; 0: nothing.
func inode(name string) uint64 {
	var st unix.Stat_t
	if unix.Lstat(name, &st) != nil {
		return 0
	}
	return st.Ino
}

// isReadOnly looks at what a process sees at a path. All covers are read-only, and nothing else below a project is. Of
// a process that is just ending it may see nothing, and says no.
var isReadOnly = func(process int, name string) bool {
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", process), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(root)
	fd, err := unix.Openat2(root, name, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Statfs_t
	return unix.Fstatfs(fd, &st) == nil && st.Flags&unix.ST_RDONLY != 0
}

// tries is how often a cover is made before it counts as impossible: an agent
// that is quick enough may remove one before it is mounted.
const tries = 20

// cover lays the file's cover over it in the sandbox of a process, read-only. was is whether it lay there before: that
// is seen in the mount namespace itself, which stays whole while somebody is in it.
func (f File) cover(process int) (was bool, err error) {
	c := within.Cover{Path: f.Path, Mode: 0o444, ReadOnly: true}
	if f.Remake != nil {
		if c.With = within.File; f.Folder {
			c.With = within.Folder
		}
		if c.Content, err = f.Remake(f.Path); err != nil {
			return false, err
		}
	}
	seen := make([]within.Seen, 1)
	for n := range tries {
		if err = within.Lay(process, []within.Cover{c}, seen); err == nil {
			return n == 0 && seen[0].Before.Flags&unix.ST_RDONLY != 0, nil
		}
	}
	return false, err
}
