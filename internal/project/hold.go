package project

import (
	"errors"
	"os"
	"path"
	"strings"
	"time"

	"claudebox/internal/beneath"
	"claudebox/internal/diag"
	"golang.org/x/sys/unix"
)

// placeholder is a file or folder that stands in for an absent one, so that
// something can be mounted there. It changes nothing for git.
type placeholder struct {
	root    string // canonical folder, see [Mount]
	rel     string
	dir     bool
	content string
}

// Hold is the placeholders of one running session. The zero value holds
// nothing.
type Hold struct {
	made  []placeholder
	locks map[string]*os.File // the placeholders' parent folders, locked as shared
}

// Hold makes the placeholders that the project's mounts rely on. Sessions
// that run at the same time share them; the last one to [Hold.Release] takes
// them away, and the next launch those of a session that was killed.
func (p Project) Hold() (*Hold, error) {
	h := &Hold{locks: map[string]*os.File{}}
	for _, ph := range p.placeholders {
		if err := h.hold(ph); err != nil {
			h.Release()
			return nil, &diag.Error{
				Op: "make " + path.Join(ph.root, ph.rel) + ", which keeps the agent from making it", Err: err,
				Remedy: "make the folder writable for you, or set `git: {config: writable}` to do without",
			}
		}
	}
	return h, nil
}

func (h *Hold) hold(ph placeholder) error {
	parent, err := h.parent(ph)
	if err != nil {
		return err
	}
	if err := ph.make(int(parent.Fd())); err != nil {
		return err
	}
	h.made = append(h.made, ph)
	return nil
}

// parent opens and locks the folder a placeholder stands in, once for all
// placeholders in it.
func (h *Hold) parent(ph placeholder) (*os.File, error) {
	if f := h.locks[ph.parent()]; f != nil {
		return f, nil
	}
	base, err := beneath.Open(ph.root)
	if err != nil {
		return nil, err
	}
	defer base.Close()
	f, err := base.OpenDir(path.Dir(ph.rel))
	if err != nil {
		return nil, err
	}
	if err := lock(f, unix.LOCK_SH); err != nil {
		f.Close()
		return nil, err
	}
	h.locks[ph.parent()] = f
	return f, nil
}

func (ph placeholder) parent() string { return path.Join(ph.root, path.Dir(ph.rel)) }

// make creates the placeholder in its open parent; one that is there stays.
func (ph placeholder) make(parent int) error {
	name := path.Base(ph.rel)
	var err error
	if ph.dir {
		err = unix.Mkdirat(parent, name, 0o755)
	} else {
		err = writeNew(parent, name, ph.content)
	}
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

func writeNew(parent int, name, content string) error {
	fd, err := unix.Openat(parent, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(content)); err != nil {
		return errors.Join(err, unix.Unlinkat(parent, name, 0))
	}
	return nil
}

// Release takes the placeholders away, unless another session holds them or
// something was put there.
func (h *Hold) Release() {
	alone := map[string]bool{}
	for dir, f := range h.locks {
		alone[dir] = lock(f, unix.LOCK_EX) == nil
	}
	for _, ph := range h.made {
		if dir := ph.parent(); alone[dir] {
			ph.remove(int(h.locks[dir].Fd()))
		}
	}
	for _, f := range h.locks {
		f.Close()
	}
	h.made, h.locks = nil, nil
}

// remove deletes what is still as it was made. A folder that is not empty
// stays by itself.
func (ph placeholder) remove(parent int) {
	name := path.Base(ph.rel)
	if ph.dir {
		_ = unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
		return
	}
	fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	content := make([]byte, len(ph.content)+1)
	if n, err := unix.Read(fd, content); err == nil && strings.TrimRight(string(content[:n]), "\n") == strings.TrimRight(ph.content, "\n") {
		_ = unix.Unlinkat(parent, name, 0)
	}
}

// A lock on a folder is held for microseconds when it is exclusive, so a few
// tries are enough; somebody who holds it longer must not hang the launch.
const (
	lockTries = 50
	lockPause = 5 * time.Millisecond
)

var errLocked = errors.New("another program holds a lock on the folder")

func lock(f *os.File, how int) error {
	for range lockTries {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		if how == unix.LOCK_EX {
			break
		}
		time.Sleep(lockPause)
	}
	return errLocked
}
