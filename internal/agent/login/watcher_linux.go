package login

import (
	"bytes"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// settled is how long a session must last before its login is watched. Closing
// an inotify descriptor waits for the kernel's grace period, some 15 ms, which a
// short command would feel.
const settled = time.Second

// watcher reports files that were written or removed in some folders. The nil
// watcher reports none.
type watcher struct {
	mu     sync.Mutex
	timer  *time.Timer
	events *os.File // inotify(7); nil: not yet
	ended  bool
}

// watchLater begins to watch after a while. changed is called
// with the name of each file, and with none when anything may have changed.
func watchLater(folders []string, changed func(name string)) *watcher {
	w := &watcher{}
	w.timer = time.AfterFunc(settled, func() { w.begin(folders, changed) })
	return w
}

func (w *watcher) begin(folders []string, changed func(name string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return // a login that is refused is looked at again anyway
	}
	for _, folder := range folders {
		_, _ = unix.InotifyAddWatch(fd, folder, unix.IN_DELETE|unix.IN_MOVED_TO|unix.IN_CLOSE_WRITE|unix.IN_ONLYDIR)
	}
	w.events = os.NewFile(uintptr(fd), "inotify")
	go serve(w.events, changed)
}

func serve(events *os.File, changed func(name string)) {
	changed("") // what was missed
	buffer := make([]byte, 4096)
	for {
		n, err := events.Read(buffer)
		if err != nil {
			return
		}
		for rest := buffer[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			event := (*unix.InotifyEvent)(unsafe.Pointer(&rest[0]))
			end := unix.SizeofInotifyEvent + int(event.Len)
			changed(string(bytes.TrimRight(rest[unix.SizeofInotifyEvent:end], "\x00")))
			rest = rest[end:]
		}
	}
}

func (w *watcher) stop() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.timer.Stop()
	if w.events != nil {
		w.events.Close()
	}
}
