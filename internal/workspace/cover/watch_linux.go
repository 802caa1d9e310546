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
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/proctree"
	"claudebox/internal/linux/watch"
	"claudebox/internal/linux/within"
)

// File is a file or folder that is covered in a sandbox, by its path on the host.
type File struct {
	Path   string
	Inside string // its path in the sandbox; empty: the same
	Top    string // the folder on the host below which folders may be moved; empty: that of the watch
	Folder bool
	Lent   bool // all around it is read-only inside, too: it is covered if something else is seen there
	// Remake gives what is to cover it, by its path on the host: of a folder, that it is empty. Nil: it covers itself,
	// read-only.
	Remake func(path string) ([]byte, error)
	// Kept reports whether what was found without its cover is as it was, and nobody can write it any more: then it is
	// not lost. Nil: it is lost.
	Kept func(path string) bool
}

// Watch keeps the files of one sandbox covered.
type Watch struct {
	*watch.Watch
	top   string
	lost  func(path string, err error)
	files map[string][]File // by path
	looks sync.WaitGroup    // whether files are kept

	// All that a look needs is open before the agent may run: it may take all that the kernel gives a user of such.
	process int // process 1 inside
	alive   int // its pidfd
	root    int // its root folder
}

// errGone is said of a file that was there when the sandbox was started, and not when the watch began.
var errGone = errors.New("it is gone; if its folder was moved away, what comes in its place is not covered")

// Open watches over files from now on, before they are covered in the sandbox. top is the folder below which the agent
// may rename folders. lost is called, from [Watch.Begin] on, with each file that was found without its cover: the agent
// could read or write it. err is nil if it is covered again; else the agent still can, and the session must end. lost
// must not block. What was covered when the watch is closed stays so.
func Open(top string, files []File, lost func(path string, err error)) (*Watch, error) {
	w := &Watch{top: top, lost: lost, files: map[string][]File{}, alive: -1, root: -1}
	for _, f := range files {
		w.files[f.Path] = append(w.files[f.Path], f)
	}
	if len(files) == 0 {
		return w, nil
	}
	dirs := w.folders()
	var err error
	w.Watch, err = watch.Open(watch.Request{
		Folders: func() []string { return dirs },
		Events:  unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVE_SELF | unix.IN_DONT_FOLLOW,
		See:     w.look, Moved: func(dir string) { w.unwatched(dir, unix.ENOENT) }, Failed: w.unwatched,
	})
	return w, err
}

// Begin looks at all files once, in a sandbox that waits at its gate and has all its covers, by the process id of its
// bwrap. It fails if one is not covered and cannot be. From now on lost is called. If the sandbox has ended, Begin
// does nothing.
func (w *Watch) Begin(bwrap int) error {
	if len(w.files) == 0 {
		return nil
	}
	w.process = proctree.Init(bwrap)
	if w.process == 0 {
		return within.ErrGone
	}
	var err error
	if w.alive, err = unix.PidfdOpen(w.process, 0); err == nil {
		w.root, err = unix.Open(fmt.Sprintf("/proc/%d/root", w.process), unix.O_PATH|unix.O_CLOEXEC, 0)
	}
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT) {
		return within.ErrGone
	}
	if err != nil {
		return fmt.Errorf("look at the sandbox: %w", err)
	}
	lost := w.lost
	w.lost = func(path string, lost error) {
		if lost != nil {
			err = cmp.Or(err, fmt.Errorf("%s: %w", path, lost))
		}
	}
	for name := range w.files {
		if inode(name) == 0 && inode(path.Dir(name)) != 0 {
			w.lost(name, errGone)
		}
	}
	w.look("")
	if err == nil {
		w.lost = lost
		w.Serve()
	}
	return err
}

// Close ends the watch. It may be called before [Watch.Begin].
func (w *Watch) Close() {
	w.Watch.Close()
	w.looks.Wait()
	for _, fd := range []int{w.alive, w.root} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
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
	for name, files := range w.files {
		for _, f := range files {
			top := cmp.Or(f.Top, w.top)
			for dir := path.Dir(name); ; dir = path.Dir(dir) {
				if !known[dir] {
					known[dir] = true
					list = append(list, dir)
				}
				if !strings.HasPrefix(dir, top+"/") {
					break
				}
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
			w.look(name)
		}
		return
	}
	for _, f := range w.files[name] {
		w.lookAt(f)
	}
}

// lookAt is [Watch.look] for one file.
func (w *Watch) lookAt(f File) {
	name, now := f.Path, inode(f.Path)
	if now == 0 {
		return // nothing is there; the watch reports what is made there later
	}
	if w.ended() || isCovered(w.root, f) {
		return // nobody is left to see it, or all is well
	}
	was, err := f.cover(w.process)
	switch {
	case err == nil && !was && f.Kept != nil:
		w.looks.Go(func() { w.lookKept(f) })
	case err == nil && !was:
		w.lost(name, nil)
	case was, errors.Is(err, within.ErrGone), w.ended():
		// It was covered all the time, or nobody is left to see it.
	case inode(name) == now: // else it was replaced once more, and is looked at once more
		w.lost(name, err)
	}
}

// lookKept looks whether a file that is covered again was kept. Whoever made it writes it first.
func (w *Watch) lookKept(f File) {
	for range tries {
		if f.Kept(f.Path) {
			return
		}
		time.Sleep(writtenAfter)
	}
	w.lost(f.Path, nil)
}

// writtenAfter is after how long a file is looked at again that is being written.
const writtenAfter = 20 * time.Millisecond

// ended reports whether process 1 inside has ended, and with it all others.
func (w *Watch) ended() bool {
	poll := []unix.PollFd{{Fd: int32(w.alive), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n > 0
}

// inode is the number of what is at a path; 0: nothing.
func inode(name string) uint64 {
	var st unix.Stat_t
	if unix.Lstat(name, &st) != nil {
		return 0
	}
	return st.Ino
}

// isCovered looks at what the sandbox sees of a file, by its root folder. All covers are read-only, and nothing else
// below a project is; in a lent folder it is not what the host has there. When the sandbox is just ending it may see
// nothing, and says no.
var isCovered = func(root int, f File) bool {
	fd, err := unix.Openat2(root, f.inside(), &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if f.Lent {
		var seen unix.Stat_t
		return unix.Fstat(fd, &seen) == nil && !f.isHosts(seen)
	}
	var st unix.Statfs_t
	return unix.Fstatfs(fd, &st) == nil && st.Flags&unix.ST_RDONLY != 0
}

// inside is the file's path in the sandbox.
func (f File) inside() string { return cmp.Or(f.Inside, f.Path) }

// isHosts reports whether what is seen inside is what lies at the file's path on the host.
func (f File) isHosts(seen unix.Stat_t) bool {
	var there unix.Stat_t
	return unix.Lstat(f.Path, &there) == nil && there.Dev == seen.Dev && there.Ino == seen.Ino
}

// tries is how often a cover is made before it counts as impossible: an agent
// that is quick enough may remove one before it is mounted.
const tries = 20

// Now covers a file or folder at once, in the sandbox with this process 1. In one that has ended it does nothing.
func Now(process int, f File) error {
	if process == 0 {
		return nil
	}
	if _, err := f.cover(process); !errors.Is(err, within.ErrGone) {
		return err
	}
	return nil
}

// cover lays the file's cover over it in the sandbox of a process, read-only. was is whether it lay there before: that
// is seen in the mount namespace itself, which stays whole while somebody is in it.
func (f File) cover(process int) (was bool, err error) {
	c := within.Cover{Path: f.inside(), Mode: 0o444, ReadOnly: true}
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
			was = seen[0].Before.Flags&unix.ST_RDONLY != 0 && !(f.Lent && f.isHosts(seen[0].Under))
			return n == 0 && was, nil
		}
	}
	return false, err
}
