package launch

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
)

// liveCopy is a file inside the sandbox that is kept equal to one of the
// host.
type liveCopy struct {
	original string
	fd       int // of the copy, open for writing
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
		c.list = append(c.list, liveCopy{original: d.Follows, fd: fd})
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
		unix.Close(live.fd)
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

// update follows the original. One that is gone, or empty while it is being
// written, changes nothing.
func (l liveCopy) update() {
	now, err := os.ReadFile(l.original)
	if err != nil || len(now) == 0 || len(now) > 1<<20 {
		return
	}
	_ = rewrite(l.fd, now) // the copy stays as it was
}

// copyFile opens the file that a live copy is mounted from, and brings it up
// to date. bwrap mounts only what has a name, so it lies beside the agent's
// home, where no agent can write. Sessions of one instance share it, as they
// want the same of it: none removes it, and none has to make it anew.
func copyFile(d Descriptor) (int, error) {
	const how = unix.O_RDWR | unix.O_CREAT | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Open(filepath.Join(d.Folder, d.Name), how, copyMode)
	if err == nil {
		if err = rewrite(fd, d.Data); err == nil {
			return fd, nil
		}
		unix.Close(fd)
	}
	return -1, &diag.Error{Op: "copy " + d.Follows, Err: err}
}

// copyMode is the same whatever the umask is: the sandbox sees it.
const copyMode = 0o644

// rewrite changes a file in place: the mounts of it are of this very file.
func rewrite(fd int, content []byte) error {
	was := make([]byte, len(content)+1)
	if n, err := unix.Pread(fd, was, 0); err != nil || bytes.Equal(was[:n], content) {
		return err
	}
	if err := errors.Join(fill(fd, content, 0), unix.Fchmod(fd, copyMode)); err != nil {
		return err
	}
	return unix.Ftruncate(fd, int64(len(content)))
}
