package launch

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/watch"
)

// liveCopy is a file inside the sandbox that is kept equal to one of the
// host.
type liveCopy struct {
	original string
	fd       int // of the copy, open for writing
}

// copies are the live copies of a launch.
type copies struct {
	list  []liveCopy
	watch *watch.Watch // of their originals; nil: none
}

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
	c.watch.Close()
	for _, live := range c.list {
		unix.Close(live.fd)
	}
}

// follow keeps the copies up to date until close. A kernel that cannot leaves them
// as they were at the start, which is what a program that reads resolv.conf once
// has to live with as well. Folders are watched, not files: most writers replace
// the file.
func (c *copies) follow() {
	if len(c.list) == 0 {
		return
	}
	c.watch = watch.Later(watch.Question{
		Folders: func() (dirs []string) {
			for _, live := range c.list {
				dirs = append(dirs, folders(live.original)...)
			}
			return dirs
		},
		Events: unix.IN_CLOSE_WRITE | unix.IN_MOVED_TO | unix.IN_CREATE,
		See: func(string) {
			for _, live := range c.list {
				live.update()
			}
		},
	})
}

// folders are those that the file and each link on the way to it lie in.
func folders(file string) []string {
	dirs := []string{filepath.Dir(file)}
	if real, err := filepath.EvalSymlinks(file); err == nil && filepath.Dir(real) != dirs[0] {
		dirs = append(dirs, filepath.Dir(real))
	}
	return dirs
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
