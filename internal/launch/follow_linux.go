package launch

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
)

// liveCopy is a file inside the sandbox that is kept equal to one of the
// host.
type liveCopy struct {
	original string
	file     *os.File // the copy, open for writing
}

// copies are the live copies of a launch, and what watches their originals.
type copies struct {
	list  []liveCopy
	start *time.Timer // of the watch

	mu     sync.Mutex
	watch  *os.File // inotify(7); nil while nothing is watched
	closed bool
}

// settled is how long a session must last for its copies to be kept up to
// date. Closing an inotify descriptor waits for the kernel's grace period,
// some 15 ms, which a short command would feel.
const settled = time.Second

// copiesOf takes descriptors of its own on the live copies among those that
// bwrap gets.
func copiesOf(list []Descriptor, fds opened) (*copies, error) {
	c := &copies{}
	for i, d := range list {
		if d.Follows == "" {
			continue
		}
		fd, err := unix.FcntlInt(uintptr(fds[i]), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			c.close()
			return nil, &diag.Error{Op: "copy " + d.Follows, Err: err}
		}
		c.list = append(c.list, liveCopy{original: d.Follows, file: os.NewFile(uintptr(fd), d.Name)})
	}
	return c, nil
}

func (c *copies) close() {
	if c.start != nil {
		c.start.Stop()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, live := range c.list {
		os.Remove(live.name())
		live.file.Close()
	}
	if c.watch != nil {
		c.watch.Close()
	}
}

// follow keeps the copies up to date until close.
func (c *copies) follow() {
	if len(c.list) > 0 {
		c.start = time.AfterFunc(settled, c.begin)
	}
}

// begin watches the originals. A kernel that cannot leaves the copies as they
// were at the start, which is what a program that reads resolv.conf once has
// to live with as well.
func (c *copies) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil || c.closed {
		return
	}
	for _, live := range c.list {
		for _, dir := range folders(live.original) {
			// Folders, not files: most writers replace the file.
			unix.InotifyAddWatch(fd, dir, unix.IN_CLOSE_WRITE|unix.IN_MOVED_TO|unix.IN_CREATE)
		}
		live.update()
	}
	c.watch = os.NewFile(uintptr(fd), "inotify")
	go c.serve(c.watch)
}

// folders are those that the file and each link on the way to it lie in.
func folders(file string) []string {
	dirs := []string{filepath.Dir(file)}
	if real, err := filepath.EvalSymlinks(file); err == nil && filepath.Dir(real) != dirs[0] {
		dirs = append(dirs, filepath.Dir(real))
	}
	return dirs
}

// serve brings the copies up to date whenever something changes beside their
// originals. It ends when the watch is closed.
func (c *copies) serve(watch *os.File) {
	events := make([]byte, 4096)
	for {
		if _, err := watch.Read(events); err != nil {
			return
		}
		c.mu.Lock()
		for _, live := range c.list {
			live.update()
		}
		c.mu.Unlock()
	}
}

// name is the copy's path: the kernel knows it.
func (l liveCopy) name() string {
	name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(l.file.Fd())))
	if err != nil {
		return ""
	}
	return name
}

// update writes in place, since the mount inside is of this very file. An
// original that is gone, or empty while it is being written, changes nothing.
func (l liveCopy) update() {
	now, err := os.ReadFile(l.original)
	if err != nil || len(now) == 0 || len(now) > 1<<20 {
		return
	}
	was := make([]byte, len(now)+1)
	if n, _ := l.file.ReadAt(was, 0); bytes.Equal(was[:n], now) {
		return
	}
	if _, err := l.file.WriteAt(now, 0); err == nil {
		l.file.Truncate(int64(len(now)))
	}
}

// copyFile makes the file that a live copy is mounted from. bwrap asks for
// its name, so it keeps one until the session ends. The descriptor holds a
// lock, by which [sweep] knows that there is a session.
func copyFile(d Descriptor) (int, error) {
	sweep(d.Folder)
	file, err := lockedFile(d.Folder)
	if err != nil {
		return -1, &diag.Error{Op: "copy " + d.Follows, Err: err}
	}
	defer file.Close()
	if _, err = file.Write(d.Data); err == nil {
		err = file.Chmod(0o444)
	}
	if err != nil {
		os.Remove(file.Name())
		return -1, &diag.Error{Op: "copy " + d.Follows, Err: err}
	}
	return unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
}

const copyPrefix = ".copy-"

// lockedFile makes a file and locks it. Another session may sweep it in
// between; then another is made.
func lockedFile(folder string) (*os.File, error) {
	for {
		file, err := os.CreateTemp(folder, copyPrefix+"*")
		if err != nil {
			return nil, err
		}
		var st unix.Stat_t
		if err := errors.Join(unix.Flock(int(file.Fd()), unix.LOCK_SH), unix.Fstat(int(file.Fd()), &st)); err != nil {
			file.Close()
			return nil, err
		}
		if st.Nlink > 0 {
			return file, nil
		}
		file.Close()
	}
}

// sweep removes copies that a killed claudebox has left: nobody holds their
// lock.
func sweep(folder string) {
	left, err := filepath.Glob(filepath.Join(folder, copyPrefix+"*"))
	if err != nil {
		return
	}
	for _, name := range left {
		file, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			os.Remove(name)
		}
		file.Close()
	}
}
