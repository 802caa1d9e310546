package watch

import (
	"os"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/letgo"
)

// Quiet notes whether anything is changed in folders: a name, an attribute, or the content of a file, also by a mapping
// once it has ended.
type Quiet struct{ events *os.File }

// stir are all events but those of reading.
const stir = unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_CLOSE_WRITE | unix.IN_CREATE | unix.IN_DELETE |
	unix.IN_DELETE_SELF | unix.IN_MOVE | unix.IN_MOVE_SELF

// Changes begins to note changes in folders, from now on. It follows no link to one. It fails if one cannot be watched.
// The caller closes it.
func Changes(folders []string) (*Quiet, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	q := &Quiet{os.NewFile(uintptr(fd), "inotify")}
	for _, dir := range folders {
		if _, err := unix.InotifyAddWatch(fd, dir, stir|unix.IN_ONLYDIR|unix.IN_DONT_FOLLOW); err != nil {
			q.Close()
			return nil, &os.PathError{Op: "watch", Path: dir, Err: err}
		}
	}
	return q, nil
}

// None reports whether nothing was changed. What is waiting is not read, so that it says the same the next time.
func (q *Quiet) None() bool {
	raw, err := q.events.SyscallConn()
	if err != nil {
		return false
	}
	n := 1
	err = raw.Control(func(fd uintptr) { n, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0) })
	return n == 0 && err == nil
}

// Close ends it. A nil Quiet is closed.
func (q *Quiet) Close() {
	if q != nil {
		letgo.Close(q.events)
	}
}
