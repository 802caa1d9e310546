package project

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"golang.org/x/sys/unix"
)

// StandIn is a file or folder that stands in for an absent one.
type StandIn struct {
	Root string // canonical folder; below it no link is followed
	Rel  string // where it stands, below Root
	Dir  bool   // else it is an empty file
	Keep bool   // another session may have made it: held, neither made nor taken away
}

// Hold holds the stand-ins of one running session. The zero value holds nothing.
type Hold struct {
	made    []StandIn
	parents map[string]parent
}

// parent is a folder that holds stand-ins, locked as shared.
type parent struct {
	*beneath.Folder
	lock *os.File
}

// Hold makes the stand-ins that the project's mounts rely on, and holds them. It is called before the sandbox starts;
// the result is to be released when that has ended. A stand-in that is there already, from another session or a killed
// one, is held as well. The last session to [Hold.Release] takes them away.
func (p Project) Hold() (*Hold, error) {
	h := &Hold{parents: map[string]parent{}}
	for _, p := range p.StandIns {
		in, err := h.parent(p)
		if err == nil && !p.Keep {
			if err = p.make(in); err == nil {
				h.made = append(h.made, p)
			}
		}
		if err != nil {
			h.Release()
			return nil, &diag.Error{
				Op: "make " + path.Join(p.Root, p.Rel) + ", which keeps the agent from making it", Err: err,
				Remedy: "make " + path.Join(p.Root, path.Dir(p.Rel)) + " writable for you",
			}
		}
	}
	return h, nil
}

// parent opens and locks the folder that a stand-in is in, once for all stand-ins in it.
func (h *Hold) parent(p StandIn) (in parent, err error) {
	if in, ok := h.parents[p.parent()]; ok {
		return in, nil
	}
	base, err := beneath.Open(p.Root)
	if err != nil {
		return in, err
	}
	defer base.Close()
	if in.Folder, err = base.Sub(path.Dir(p.Rel)); err != nil {
		return in, err
	}
	if in.lock, err = in.OpenDir("."); err == nil {
		if err = lockShared(in.lock); err == nil {
			h.parents[p.parent()] = in
			return in, nil
		}
		in.lock.Close()
	}
	in.Close()
	return in, err
}

func (p StandIn) parent() string { return path.Join(p.Root, path.Dir(p.Rel)) }

// make creates the stand-in in its parent; one that is there stays.
func (p StandIn) make(in parent) error {
	name := path.Base(p.Rel)
	if p.Dir {
		if err := in.Mkdir(name, 0o755); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	}
	err := in.Create(name, nil, 0o644)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := in.Read(name, 0); err != nil { // it was put there since the project was looked at
		return errors.New("something else is there")
	}
	return nil
}

// Release takes the stand-ins away, unless another session holds them or
// something was put there. A folder that is not empty stays by itself.
func (h *Hold) Release() {
	alone := map[string]bool{}
	for dir, in := range h.parents {
		alone[dir] = unix.Flock(int(in.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
	}
	for _, p := range slices.Backward(h.made) { // one may lie in another
		in, name := h.parents[p.parent()], path.Base(p.Rel)
		if !alone[p.parent()] {
			continue
		}
		if p.Dir {
			_ = unix.Unlinkat(in.FD(), name, unix.AT_REMOVEDIR)
			continue
		}
		if there, err := in.Read(name, 1); err == nil && strings.Trim(string(there), "\n") == "" {
			_ = in.Remove(name)
		}
	}
	for _, in := range h.parents {
		in.lock.Close()
		in.Close()
	}
	h.made, h.parents = nil, nil
}

// lockShared locks a folder as shared. [Hold.Release] has it locked for itself for microseconds, so a few tries are
// enough; a program that has it locked for longer must not hang the launch.
func lockShared(f *os.File) error {
	const tries, pause = 50, 5 * time.Millisecond
	for range tries {
		err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		time.Sleep(pause)
	}
	return errors.New("another program holds a lock on the folder")
}
