package state

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/linux/beneath"
)

// create makes a new instance under another name and renames it when it is
// whole. When that fails, nothing of it stays.
func (in *Instance) create() (err error) {
	parent := path.Dir(in.Dir)
	for _, dir := range []string{in.req.Home, parent} {
		switch fault := os.Mkdir(dir, privateDir); {
		case fault == nil:
			defer func() {
				if err != nil {
					_ = os.Remove(dir) // stays when something else is in it by now
				}
			}()
		case !errors.Is(fault, fs.ErrExist):
			return in.failed("make "+dir, fault)
		}
	}
	return in.createIn(parent)
}

// createIn does the work of create while no other launch does the same.
func (in *Instance) createIn(parent string) error {
	lock, err := in.flock(parent, unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer lock.Close()
	in.req.sweep(parent, in.Login.File)
	if in.draft, err = look(in.req, in.place); err != nil || in.exists {
		return err // made by another launch meanwhile, and judged
	}
	undo, err := in.firstMemory(in.req)
	if err == nil {
		in.draft, err = compare(in.req, in.place, nil) // with the memory that is there now
	}
	if err == nil {
		err = in.build(path.Join(parent, unfinished+rand.Text()), in.req, &in.draft)
	}
	if err != nil {
		undo()
	}
	return err
}

// unfinished begins the name of an instance that is being made.
const unfinished = ".new-"

// build makes the instance whole under another name, then gives it its own.
func (h *held) build(temporary string, req Request, d *draft) error {
	err := h.fill(temporary, req, d)
	if err == nil {
		if err = os.Rename(temporary, h.dir); err != nil {
			err = h.failed("make "+h.dir, err)
		}
	}
	if err != nil {
		return errors.Join(err, removeAll(temporary))
	}
	d.exists = true
	return nil
}

// fill makes a whole instance at a path.
func (h *held) fill(at string, req Request, d *draft) error {
	if err := os.Mkdir(at, privateDir); err != nil {
		return h.failed("make "+h.dir, err)
	}
	dir, err := beneath.Open(at)
	if err != nil {
		return h.failed("make "+h.dir, err)
	}
	defer dir.Close()
	if err := dir.Create(liveName, nil, privateFile); err != nil {
		return h.failed("make "+path.Join(h.dir, liveName), err)
	}
	// Held before others can see the instance: they sweep what nobody uses.
	if h.live, err = h.flock(path.Join(at, liveName), unix.LOCK_SH); err != nil {
		return err
	}
	return h.apply(dir, req, d)
}

// firstMemory makes the user a CLAUDE.md of their own below Home, once
// (AWARE-01). undo takes it away again.
func (p place) firstMemory(req Request) (undo func(), err error) {
	nothing := func() {}
	for _, name := range agenthome.MemoryFiles(req.home()) {
		if _, err := os.Stat(name); err == nil || !missing(err) {
			return nothing, nil
		}
	}
	home, err := beneath.Open(p.home)
	if err != nil {
		return nothing, p.failed("open "+p.home, err)
	}
	defer home.Close()
	name := home.Join(agenthome.MemoryName)
	err = home.Create(agenthome.MemoryName, []byte(agenthome.FirstMemory), 0o644)
	switch {
	case errors.Is(err, fs.ErrExist): // a link to nothing: the user's own affair
		return nothing, nil
	case err != nil:
		return nothing, p.failed("make "+name, err)
	}
	return func() { _ = os.Remove(name) }, nil
}
