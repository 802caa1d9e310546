package project

import (
	"errors"
	"os"
	"path"
	"strings"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"golang.org/x/sys/unix"
)

// Placeholder is a file or folder that stands in for an absent one.
type Placeholder struct {
	Root    string // canonical folder; below it no link is followed
	Rel     string // where it stands, below Root
	Dir     bool
	Content string // of a file
	Keep    bool   // another session may have made it: held, neither made nor taken away
}

// Hold is the placeholders of one running session. The zero value holds
// nothing.
type Hold struct {
	made  []Placeholder
	locks map[string]*os.File // the placeholders' parent folders, locked as shared
}

// hold makes placeholders and holds them. One that is there already, from
// another session or a killed one, is held as well. The last session to
// [Hold.Release] takes them away.
func hold(list []Placeholder) (*Hold, error) {
	h := &Hold{locks: map[string]*os.File{}}
	for _, p := range list {
		parent, err := h.parent(p)
		if err == nil && !p.Keep {
			if err = p.make(int(parent.Fd())); err == nil {
				h.made = append(h.made, p)
			}
		}
		if err != nil {
			h.Release()
			return nil, &diag.Error{
				Op: "make " + path.Join(p.Root, p.Rel) + ", which keeps the agent from making it", Err: err,
				Remedy: "make its folder writable for you",
			}
		}
	}
	return h, nil
}

// parent opens and locks the folder a placeholder stands in, once for all
// placeholders in it.
func (h *Hold) parent(p Placeholder) (*os.File, error) {
	if f := h.locks[p.parent()]; f != nil {
		return f, nil
	}
	base, err := beneath.Open(p.Root)
	if err != nil {
		return nil, err
	}
	defer base.Close()
	f, err := base.OpenDir(path.Dir(p.Rel))
	if err != nil {
		return nil, err
	}
	if err := lock(f, unix.LOCK_SH); err != nil {
		f.Close()
		return nil, err
	}
	h.locks[p.parent()] = f
	return f, nil
}

func (p Placeholder) parent() string { return path.Join(p.Root, path.Dir(p.Rel)) }

// make creates the placeholder in its open parent; one that is there stays.
func (p Placeholder) make(parent int) error {
	name := path.Base(p.Rel)
	if p.Dir {
		if err := unix.Mkdirat(parent, name, 0o755); !errors.Is(err, unix.EEXIST) {
			return err
		}
		return nil
	}
	fd, err := unix.Openat(parent, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err == nil {
		defer unix.Close(fd)
		if _, err := unix.Write(fd, []byte(p.Content)); err != nil {
			return errors.Join(err, unix.Unlinkat(parent, name, 0))
		}
		return nil
	}
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	// Another session may be writing it; anything else was put there since the
	// project was looked at.
	if there, err := p.read(parent); err != nil || !strings.HasPrefix(p.Content, there) {
		return errors.New("something else is there")
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
	for _, p := range h.made {
		if dir := p.parent(); alone[dir] {
			p.remove(int(h.locks[dir].Fd()))
		}
	}
	for _, f := range h.locks {
		f.Close()
	}
	h.made, h.locks = nil, nil
}

// remove deletes what is still as it was made. A folder that is not empty
// stays by itself.
func (p Placeholder) remove(parent int) {
	name := path.Base(p.Rel)
	if p.Dir {
		_ = unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
		return
	}
	if there, err := p.read(parent); err == nil &&
		strings.TrimRight(there, "\n") == strings.TrimRight(p.Content, "\n") {
		_ = unix.Unlinkat(parent, name, 0)
	}
}

// read gives what stands in a file's place, but no more than tells it from
// the placeholder.
func (p Placeholder) read(parent int) (string, error) {
	fd, err := unix.Openat(parent, path.Base(p.Rel), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	content := make([]byte, len(p.Content)+1)
	n, err := unix.Read(fd, content)
	return string(content[:max(n, 0)]), err
}

// lock waits for a shared lock only. An exclusive one is held for microseconds, so
// a few tries are enough; somebody who holds it longer must not hang the launch.
func lock(f *os.File, how int) error {
	const tries, pause = 50, 5 * time.Millisecond
	for range tries {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		if how == unix.LOCK_EX {
			break
		}
		time.Sleep(pause)
	}
	return errors.New("another program holds a lock on the folder")
}
