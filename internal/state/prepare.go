package state

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"time"

	"claudebox/internal/beneath"
	"golang.org/x/sys/unix"
)

// Prepare makes what [Look] found missing and marks the instance as in use
// until [Instance.Close]. A new instance appears whole or not at all; in one
// that exists every file is replaced in one step. Launches of the same
// project at the same time wait for each other.
func (in *Instance) Prepare() error {
	err := in.prepare()
	if err != nil {
		in.release()
	}
	return err
}

func (in *Instance) prepare() error {
	if !in.exists {
		if err := in.create(); err != nil {
			return err
		}
	}
	dir, err := beneath.Open(in.Dir)
	if err != nil {
		return in.failed("open "+in.Dir, err)
	}
	in.dir = dir
	if len(in.writes) > 0 {
		if err := in.update(); err != nil {
			return err
		}
	}
	return in.use()
}

// update brings an existing instance up to date under its lock. What Look saw
// may be old by now, so it looks again.
func (in *Instance) update() error {
	lock, err := in.flock(in.Dir, unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := in.compare(in.dir); err != nil {
		return err
	}
	return in.apply(in.dir)
}

// apply does every planned step, takes the stamps and writes the record.
func (in *Instance) apply(dir *beneath.Folder) error {
	next := in.nextRecord()
	for _, w := range in.writes {
		if err := w.do(dir); err != nil {
			return in.failed("make "+path.Join(in.Dir, w.rel), bare(err))
		}
		if w.file == "" {
			continue
		}
		what, err := dir.Look(w.rel)
		if err != nil {
			return in.failed("look at "+dir.Join(w.rel), err)
		}
		w.seen.Output = what.Stamp
		next.Files[w.file] = w.seen
	}
	if err := dir.Rewrite(recordName, next.encode(), privateFile); err != nil {
		return in.failed("make "+path.Join(in.Dir, recordName), bare(err))
	}
	in.known, in.writes = next, nil
	return nil
}

// nextRecord is the known one, to be changed.
func (in *Instance) nextRecord() record {
	next := record{Files: map[string]seen{}}
	if in.req.Kind != Shared {
		next.Root = in.req.Root
	}
	for name, was := range in.known.Files {
		next.Files[name] = was
	}
	return next
}

// bare is the cause without the path, which the operation names already.
func bare(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// use marks the instance as in use: the lock tells others that it lives, the
// file's time when that was last.
func (in *Instance) use() error {
	if in.live == nil {
		live, err := in.flock(in.dir.Join(liveName), unix.LOCK_SH)
		if err != nil {
			return err
		}
		in.live = live
	}
	if err := unix.Futimes(int(in.live.Fd()), nowTwice()); err != nil {
		return in.failed("mark "+in.Dir+" as used", err)
	}
	return in.saveApproval()
}

// nowTwice leaves the time to the kernel's clock as utimes(2) reads it.
func nowTwice() []unix.Timeval {
	var now unix.Timeval
	_ = unix.Gettimeofday(&now) // cannot fail with a valid address
	return []unix.Timeval{now, now}
}

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
			return made, in.failed("make "+dir, bare(err))
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
	Sweep(parent)
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
		return in.failed("make "+in.Dir, bare(err))
	}
	return nil
}

// unfinished begins the name of an instance that is being made.
const unfinished = ".new-"

// fill makes a whole instance at a path.
func (in *Instance) fill(at string) error {
	if err := os.Mkdir(at, privateDir); err != nil {
		return in.failed("make "+in.Dir, bare(err))
	}
	dir, err := beneath.Open(at)
	if err != nil {
		return in.failed("make "+in.Dir, bare(err))
	}
	defer dir.Close()
	if err := dir.Create(liveName, nil, privateFile); err != nil {
		return in.failed("make "+path.Join(in.Dir, liveName), bare(err))
	}
	// Held before others can see the instance: they sweep what nobody uses.
	if in.live, err = in.flock(path.Join(at, liveName), unix.LOCK_SH); err != nil {
		return err
	}
	return in.apply(dir)
}

// firstMemory makes the user a CLAUDE.md of his own below Home, once
// (AWARE-01). undo takes it away again.
func (in *Instance) firstMemory() (undo func(), err error) {
	nothing := func() {}
	for _, name := range memoryFiles(in.req) {
		if _, err := os.Stat(name); err == nil || !missing(err) {
			return nothing, nil
		}
	}
	home, err := beneath.Open(in.req.Home)
	if err != nil {
		return nothing, in.failed("open "+in.req.Home, bare(err))
	}
	defer home.Close()
	err = home.Create(memoryName, []byte(firstMemory), 0o644)
	switch {
	case errors.Is(err, fs.ErrExist): // a link to nothing: the user's own affair
		return nothing, nil
	case err != nil:
		return nothing, in.failed("make "+home.Join(memoryName), bare(err))
	}
	return func() { _ = os.Remove(home.Join(memoryName)) }, nil
}

// A lock is held for milliseconds; who waits longer hears of it.
const (
	lockTries = 200
	lockPause = 20 * time.Millisecond
)

var errBusy = errors.New("another claudebox has held it for some seconds")

// flock opens a file or folder and locks it.
func (in *Instance) flock(name string, how int) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, in.failed("open "+name, bare(err))
	}
	err = unix.EWOULDBLOCK
	for n := 0; n < lockTries && errors.Is(err, unix.EWOULDBLOCK); n++ {
		if n > 0 {
			time.Sleep(lockPause)
		}
		err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errBusy
	}
	if err != nil {
		f.Close()
		return nil, in.failed("lock "+name, err)
	}
	return f, nil
}
