// Package watch reports changes to the names in folders while a session runs (inotify(7)).
package watch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/letgo"
)

// settled is how long a session must last before a watch of [Start] begins.
const settled = 100 * time.Millisecond

// Request says what to watch, and which functions to call. They are called one at a time, with the watch's lock
// held, and not after [Watch.Close].
type Request struct {
	Folders func() []string // called when the watch begins, and when folders may have come or gone
	Events  uint32          // event bits of inotify(7), such as unix.IN_CREATE
	// See is called with the path of each name to which an event happened. An empty path means that anything may have
	// happened, as before the watch began.
	See func(path string)
	// Moved is called with a folder that was moved itself. It is needed with IN_MOVE_SELF only.
	Moved func(folder string)
	// Failed is called with a folder that cannot be watched any more, or "" if none can be. nil: failures do not
	// matter. A folder that was removed is no failure while the one above it is watched: it is watched again when it
	// is made again.
	Failed func(folder string, err error)
}

// Watch is a watch that runs, or will start soon. A nil Watch does nothing.
type Watch struct {
	Request
	start *time.Timer // for begin; nil: the watch was opened by Open

	mu     sync.Mutex
	dirs   map[int32]string // by watch descriptor
	fd     int              // of events, if that is not nil
	events *os.File         // nil: it has not begun
	closed bool
}

// Open watches the folders from now on. It fails if one cannot be watched. What happens is kept in order until
// [Watch.Serve] is called. The caller closes the watch.
func Open(r Request) (*Watch, error) {
	w := &Watch{Request: r, dirs: map[int32]string{}}
	if err := w.open(); err != nil {
		return nil, err
	}
	for _, dir := range w.Folders() {
		if err := w.add(dir); err != nil {
			w.Close()
			return nil, fmt.Errorf("watch %s: %w", dir, err)
		}
	}
	return w, nil
}

// Serve begins to report what has happened since [Open].
func (w *Watch) Serve() { go w.serve(w.events) }

// Start returns a watch that begins after 100 ms, so that a short session does not pay for it. It is for what protects
// nothing: if the kernel has no room for it by then, r.Failed is called. The caller closes it.
func Start(r Request) *Watch {
	w := &Watch{Request: r, dirs: map[int32]string{}}
	w.start = time.AfterFunc(settled, w.begin)
	return w
}

// Close ends the watch.
func (w *Watch) Close() {
	if w == nil {
		return
	}
	if w.start != nil {
		w.start.Stop()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.events != nil {
		letgo.Close(w.events)
	}
}

func (w *Watch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	if err := w.open(); err != nil {
		w.fail("", err)
		return
	}
	for _, dir := range w.Folders() {
		if err := w.add(dir); err != nil {
			w.fail(dir, err)
		}
	}
	w.See("")
	go w.serve(w.events)
}

func (w *Watch) open() error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return os.NewSyscallError("inotify_init1", err)
	}
	w.fd, w.events = fd, os.NewFile(uintptr(fd), "inotify")
	return nil
}

func (w *Watch) add(dir string) error {
	wd, err := unix.InotifyAddWatch(w.fd, dir, w.Events|unix.IN_ONLYDIR)
	if err == nil {
		w.dirs[int32(wd)] = dir
	}
	return err
}

// again watches all folders anew: events were lost, or a folder was removed or made. Those that are watched already
// stay so. A folder comes before those in it: what is made in it after the look at these is told then.
func (w *Watch) again() {
	list := slices.Sorted(slices.Values(w.Folders()))
	for _, dir := range list {
		err := w.add(dir)
		above := errors.Is(err, unix.ENOENT) && slices.Contains(list, path.Dir(dir))
		if err != nil && !above {
			w.fail(dir, err)
		}
	}
	w.See("")
}

func (w *Watch) fail(dir string, err error) {
	if w.Failed != nil {
		w.Failed(dir, err)
	}
}

// serve reports events until the watch is closed.
func (w *Watch) serve(events *os.File) {
	buffer := make([]byte, 8<<10)
	for {
		n, err := events.Read(buffer)
		w.mu.Lock()
		if w.closed {
			w.mu.Unlock()
			return
		}
		if err != nil {
			w.fail("", err)
			w.mu.Unlock()
			return
		}
		w.report(buffer[:n])
		w.mu.Unlock()
	}
}

// report reports the events in a buffer. It is called with the lock held.
func (w *Watch) report(list []byte) {
	again := false
	for e := range Events(list) {
		dir, known := w.dirs[e.Folder]
		switch {
		case e.Mask&unix.IN_Q_OVERFLOW != 0:
			again = true
		case !known: // of a folder that is not watched any more
		case e.Mask&unix.IN_IGNORED != 0: // it was removed, or its file system is gone
			delete(w.dirs, e.Folder)
			again = true
		case e.Mask&unix.IN_MOVE_SELF != 0:
			w.Moved(dir)
		case e.Mask&unix.IN_ISDIR != 0 && slices.Contains(w.Folders(), path.Join(dir, e.Name)):
			again = true
		default:
			w.See(path.Join(dir, e.Name))
		}
	}
	if again {
		w.again()
	}
}

// Event is one of inotify(7): what happened to a name in a folder, by the folder's watch descriptor.
type Event struct {
	Folder int32
	Mask   uint32
	Name   string // empty: it is about the folder itself
}

// Events are the events in what was read of an inotify descriptor.
func Events(list []byte) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for len(list) >= unix.SizeofInotifyEvent {
			folder, mask, length := int32(binary.NativeEndian.Uint32(list)), binary.NativeEndian.Uint32(list[4:]),
				binary.NativeEndian.Uint32(list[12:])
			end := min(unix.SizeofInotifyEvent+int(length), len(list))
			name := strings.TrimRight(string(list[unix.SizeofInotifyEvent:end]), "\x00")
			if list = list[end:]; !yield(Event{folder, mask, name}) {
				return
			}
		}
	}
}
