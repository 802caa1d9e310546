// Package watch reports changes to the names in folders while a session runs (inotify(7)).
package watch

import (
	"encoding/binary"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// settled is how long a session must last before anything is watched. Closing an inotify descriptor waits for the
// kernel's grace period, some 15 ms, which would be felt after a short command.
const settled = 100 * time.Millisecond

// Request says what to watch, and which functions to call. They are called one at a time, with the watch's lock
// held, and not after [Watch.Close].
type Request struct {
	Folders func() []string // called when the watch begins
	Events  uint32          // event bits of inotify(7), such as unix.IN_CREATE
	// See is called with the path of each name to which an event happened. An empty path means that anything may have
	// happened, as before the watch began.
	See func(path string)
	// Moved is called with a folder that was moved itself. It is needed with IN_MOVE_SELF only.
	Moved func(folder string)
	// Failed is called with a folder that cannot be watched, or "" if none can be. nil: failures do not matter.
	Failed func(folder string, err error)
}

// Watch is a watch that runs, or will start soon. A nil Watch does nothing.
type Watch struct {
	Request
	start *time.Timer // for begin

	mu     sync.Mutex
	dirs   map[int32]string // by watch descriptor
	events *os.File         // nil: it has not begun
	closed bool
}

// Start returns a watch that begins after 100 ms. The caller closes it.
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
	w.start.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.events != nil {
		w.events.Close()
	}
}

func (w *Watch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		w.fail("", err)
		return
	}
	w.events = os.NewFile(uintptr(fd), "inotify")
	for _, dir := range w.Folders() {
		wd, err := unix.InotifyAddWatch(fd, dir, w.Events|unix.IN_ONLYDIR)
		if err != nil {
			w.fail(dir, err)
			continue
		}
		w.dirs[int32(wd)] = dir
	}
	w.See("")
	go w.serve(w.events)
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
		if err != nil {
			return
		}
		w.mu.Lock()
		for rest := buffer[:n]; len(rest) >= unix.SizeofInotifyEvent && !w.closed; {
			wd, mask, length := int32(binary.NativeEndian.Uint32(rest)), binary.NativeEndian.Uint32(rest[4:]),
				binary.NativeEndian.Uint32(rest[12:])
			end := min(unix.SizeofInotifyEvent+int(length), len(rest))
			name := strings.TrimRight(string(rest[unix.SizeofInotifyEvent:end]), "\x00")
			rest = rest[end:]
			switch {
			case mask&unix.IN_Q_OVERFLOW != 0:
				w.See("")
			case mask&unix.IN_MOVE_SELF != 0:
				w.Moved(w.dirs[wd])
			default:
				w.See(path.Join(w.dirs[wd], name))
			}
		}
		w.mu.Unlock()
	}
}
