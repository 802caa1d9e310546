package state

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/linux/beneath"
	"golang.org/x/sys/unix"
)

// create makes a new instance under another name and renames it when it is
// whole. When that fails, nothing of it stays.
func (in *Instance) create() error {
	parent := path.Dir(in.Dir)
	made, err := in.makeParents(parent)
	if err == nil {
		err = in.createIn(parent)
	}
	if err != nil {
		for _, dir := range made {
			_ = os.Remove(dir) // stays when something else is in it by now
		}
	}
	return err
}

// makeParents makes Home and the folder of instances, and gives those that
// were missing, the deepest first.
func (in *Instance) makeParents(parent string) (made []string, err error) {
	for _, dir := range []string{in.req.Home, parent} {
		err := os.Mkdir(dir, privateDir)
		if err == nil {
			made = append([]string{dir}, made...)
		} else if !errors.Is(err, fs.ErrExist) {
			return made, in.failed("make "+dir, err)
		}
	}
	return made, nil
}

// createIn does the work of create while no other launch does the same.
func (in *Instance) createIn(parent string) error {
	lock, err := in.flock(parent, unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer lock.Close()
	in.sweep(parent)
	if err := in.look(); err != nil || in.exists {
		return err // made by another launch meanwhile, and judged
	}
	undo, err := in.firstMemory()
	if err == nil {
		err = in.build(parent)
	}
	if err != nil {
		undo()
	}
	return err
}

// build makes the instance whole under another name, then gives it its own.
func (in *Instance) build(parent string) error {
	if err := in.compare(nil); err != nil { // with the memory that is there now
		return err
	}
	temporary := path.Join(parent, unfinished+rand.Text())
	err := in.fill(temporary)
	if err == nil {
		err = in.rename(temporary)
	}
	if err != nil {
		return errors.Join(err, removeAll(temporary))
	}
	in.exists = true
	return nil
}

func (in *Instance) rename(temporary string) error {
	if err := os.Rename(temporary, in.Dir); err != nil {
		return in.failed("make "+in.Dir, err)
	}
	return nil
}

// unfinished begins the name of an instance that is being made.
const unfinished = ".new-"

// fill makes a whole instance at a path.
func (in *Instance) fill(at string) error {
	if err := os.Mkdir(at, privateDir); err != nil {
		return in.failed("make "+in.Dir, err)
	}
	dir, err := beneath.Open(at)
	if err != nil {
		return in.failed("make "+in.Dir, err)
	}
	defer dir.Close()
	if err := dir.Create(liveName, nil, privateFile); err != nil {
		return in.failed("make "+path.Join(in.Dir, liveName), err)
	}
	// Held before others can see the instance: they sweep what nobody uses.
	if in.live, err = in.flock(path.Join(at, liveName), unix.LOCK_SH); err != nil {
		return err
	}
	return in.apply(dir)
}

// firstMemory makes the user a CLAUDE.md of their own below Home, once
// (AWARE-01). undo takes it away again.
func (in *Instance) firstMemory() (undo func(), err error) {
	nothing := func() {}
	for _, name := range agenthome.MemoryFiles(in.req.home()) {
		if _, err := os.Stat(name); err == nil || !missing(err) {
			return nothing, nil
		}
	}
	home, err := beneath.Open(in.req.Home)
	if err != nil {
		return nothing, in.failed("open "+in.req.Home, err)
	}
	defer home.Close()
	err = home.Create(agenthome.MemoryName, []byte(agenthome.FirstMemory), 0o644)
	switch {
	case errors.Is(err, fs.ErrExist): // a link to nothing: the user's own affair
		return nothing, nil
	case err != nil:
		return nothing, in.failed("make "+home.Join(agenthome.MemoryName), err)
	}
	return func() { _ = os.Remove(home.Join(agenthome.MemoryName)) }, nil
}
