package guard

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/letgo"
	inotify "claudebox/internal/linux/watch"
	"claudebox/internal/workspace/git"
)

// watch tells a guard of names that appear in its folders, and watches folders that are made. One goroutine reads, so
// that a name in a known folder does not wait until a new tree is watched; another watches new folders.
type watch struct {
	guard  *Guard
	fd     int
	events *os.File

	mu    sync.Mutex
	dirs  map[int32]string // by watch descriptor
	fresh []fresh          // folders to be watched
	more  *sync.Cond       // there are some, or closed
	done  bool             // nothing runs inside any more
	// serves says that somebody reads.
	serves bool
	ended  sync.WaitGroup
}

// fresh is a folder to be watched, with all below it.
type fresh struct {
	rel string
	// again says that what is watched below it is looked at once more, as names may have come that were looked for
	// elsewhere: it was moved, was closed, or events were lost.
	again bool
}

// appears are the events by which a name appears in a folder.
const appears = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_ONLYDIR

func openWatch(g *Guard) (*watch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	w := &watch{guard: g, fd: fd, events: os.NewFile(uintptr(fd), "inotify"), dirs: map[int32]string{}}
	w.more = sync.NewCond(&w.mu)
	for _, rel := range g.Folders {
		if _, err := w.add(rel); err != nil {
			w.events.Close()
			return nil, fmt.Errorf("watch %s: %w", g.root.Join(rel), err)
		}
	}
	return w, nil
}

// add watches a folder, if there is one at rel. No link is followed. Of one that the agent has closed it watches the
// folder above it, for when it is opened: until then no tool comes there either. known says that it was watched there
// already.
func (w *watch) add(rel string) (known bool, err error) {
	known, err = w.addFor(rel, appears)
	if errors.Is(err, unix.EACCES) {
		if _, err = w.addFor(path.Dir(rel), appears|unix.IN_ATTRIB); err == nil {
			if known, err = w.addFor(rel, appears); errors.Is(err, unix.EACCES) { // it was not opened meanwhile
				return false, nil
			}
		}
	}
	return known, err
}

func (w *watch) addFor(rel string, events uint32) (known bool, err error) {
	folder, err := w.guard.root.Sub(rel)
	if err != nil {
		return false, nil // it went, or is no folder
	}
	defer folder.Close()
	wd, err := unix.InotifyAddWatch(w.fd, fmt.Sprintf("/proc/self/fd/%d", folder.FD()), events|unix.IN_MASK_ADD)
	if err == nil {
		w.mu.Lock()
		known = w.dirs[int32(wd)] == rel
		w.dirs[int32(wd)] = rel
		w.mu.Unlock()
	}
	return known, err
}

func (w *watch) serve() {
	w.mu.Lock()
	w.serves = true
	w.mu.Unlock()
	w.ended.Go(w.guard.follow)
	w.ended.Go(w.read)
	w.ended.Go(w.follow)
}

// close ends the watch, and goes through what has happened until now.
func (w *watch) close() {
	w.mu.Lock()
	serves := w.serves
	w.done = true
	w.more.Broadcast()
	w.mu.Unlock()
	_ = w.events.SetReadDeadline(time.Now())
	w.ended.Wait()
	defer letgo.Close(w.events)
	if !serves {
		return
	}
	buffer := make([]byte, 16<<10)
	for {
		n, err := unix.Read(w.fd, buffer)
		if err != nil {
			break
		}
		w.report(buffer[:n])
	}
	for len(w.fresh) > 0 {
		list := w.fresh
		w.fresh = nil
		for _, f := range list {
			w.tree(f)
		}
	}
}

// read reports events until the watch is closed.
func (w *watch) read() {
	buffer := make([]byte, 16<<10)
	for {
		n, err := w.events.Read(buffer)
		if err != nil {
			if !w.closed() {
				w.guard.Lost(err)
			}
			return
		}
		w.report(buffer[:n])
	}
}

func (w *watch) closed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done
}

func (w *watch) report(list []byte) {
	for e := range inotify.Events(list) {
		w.mu.Lock()
		dir, known := w.dirs[e.Folder]
		if e.Mask&unix.IN_IGNORED != 0 {
			delete(w.dirs, e.Folder)
		}
		w.mu.Unlock()
		switch {
		case e.Mask&unix.IN_Q_OVERFLOW != 0:
			w.queue(fresh{".", true})
		case !known || e.Name == "":
		default:
			if e.Mask&unix.IN_ATTRIB == 0 {
				w.guard.see(dir, e.Name)
			}
			if e.Mask&(unix.IN_MOVED_TO|unix.IN_ISDIR) == unix.IN_MOVED_TO {
				w.guard.moved(dir, e.Name)
			}
			if e.Mask&(unix.IN_CREATE|unix.IN_ISDIR) == unix.IN_CREATE|unix.IN_ISDIR {
				w.guard.appeared(path.Join(dir, e.Name))
			}
			if e.Mask&unix.IN_ISDIR != 0 && w.enters(e.Name) {
				w.queue(fresh{path.Join(dir, e.Name), e.Mask&unix.IN_CREATE == 0})
			}
		}
	}
}

// enters reports whether folders of a name are watched. A repository of the user's is git's.
func (w *watch) enters(name string) bool {
	return !git.IsDotGit(name) && !slices.Contains(w.guard.Skipped, name)
}

// queue has a folder watched, with all below it.
func (w *watch) queue(f fresh) {
	w.mu.Lock()
	w.fresh = append(w.fresh, f)
	w.more.Signal()
	w.mu.Unlock()
}

// follow watches folders that were made, until the watch is closed.
func (w *watch) follow() {
	for {
		w.mu.Lock()
		for len(w.fresh) == 0 && !w.done {
			w.more.Wait()
		}
		if w.done {
			w.mu.Unlock()
			return
		}
		list := w.fresh
		w.fresh = nil
		w.mu.Unlock()
		for _, f := range list {
			w.tree(f)
		}
	}
}

// mostNames is how many names in one folder are looked at.
const mostNames = 1 << 20

// tree watches a folder and all below it, and looks at the names that are there already. Of a folder that was watched
// before, the events tell: in a deep tree each folder would be looked at once for each one above it.
func (w *watch) tree(top fresh) {
	for level := []string{top.rel}; len(level) > 0; level = level[1:] {
		rel := level[0]
		known, err := w.add(rel)
		if err != nil {
			w.guard.Lost(fmt.Errorf("watch %s: %w", w.guard.root.Join(rel), err))
			return
		}
		if known && !top.again {
			continue
		}
		dir, err := w.guard.root.OpenDir(rel)
		if err != nil {
			continue // it went, is no folder, or is closed
		}
		entries, _ := dir.ReadDir(mostNames)
		dir.Close()
		for _, e := range entries {
			w.guard.see(rel, e.Name())
			if e.IsDir() && w.enters(e.Name()) {
				level = append(level, path.Join(rel, e.Name()))
			}
		}
	}
}
