package state

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
)

// Prepare makes what [Look] found missing and marks the instance as in use
// until [Instance.Close]. A new instance appears whole or not at all; in one
// that exists every file is replaced in one step. Launches of the same
// project at the same time wait for each other.
func (in *Instance) Prepare() error {
	err := in.prepare()
	if err != nil {
		in.endLogin()
		in.release()
	}
	return err
}

func (in *Instance) prepare() error {
	for held := false; !held; {
		if !in.exists {
			if err := in.create(); err != nil {
				return err
			}
		}
		var err error
		if held, err = in.hold(); err != nil {
			return err
		}
		in.exists = held // false: it was removed a moment ago
	}
	if len(in.steps) > 0 {
		lock, err := in.flock(in.Dir, unix.LOCK_EX)
		if err != nil {
			return err
		}
		in.draft, err = compare(in.place, in.open) // what Look found may have changed since
		if err == nil {
			err = in.apply(in.open, &in.draft)
		}
		lock.Close()
		if err != nil {
			return err
		}
	}
	for _, dir := range in.Conversations() { // as Claude Code would make them
		if err := os.MkdirAll(dir, privateDir); err != nil {
			return diag.Wrap("make "+dir, err, "use `state: project`")
		}
	}
	if err := in.keepOutside(); err != nil {
		return err
	}
	// The time of the lock's file, set to now, says when the instance was used last.
	if err := unix.UtimesNanoAt(in.open.FD(), liveName, nil, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return in.failed("mark "+in.dir+" as used", err)
	}
	return in.keepApproval()
}

// hold opens the instance and locks it as in use. It returns false if the instance is no longer there.
func (h *held) hold() (bool, error) {
	dir, err := beneath.Open(h.dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, h.failed("open "+h.dir, err)
	}
	h.open = dir
	if h.live != nil {
		return true, nil // this process has made it, and locked it before others could see it
	}
	return h.lock()
}

// lock locks the open instance as in use. It returns false if the instance was removed, and perhaps made anew, since
// it was opened.
func (h *held) lock() (locked bool, err error) {
	h.live, err = h.flock(h.open.Join(liveName), unix.LOCK_SH)
	if !h.isStill(h.open) {
		h.release()
		return false, nil // whatever err is: it is about a removed instance
	}
	return err == nil, err
}

// apply makes the changes of all steps, and writes the record with the new stamps.
func (h *held) apply(dir *beneath.Folder, d *draft) error {
	d.known.Root, d.known.Folder = []byte(h.req.Root), folderOf(h.req.Root)
	if h.req.Kind == Shared {
		d.known.Root, d.known.Folder = nil, ""
	}
	if d.known.Files == nil {
		d.known.Files = map[string]fileRecord{}
	}
	for _, s := range d.steps {
		if err := s.apply(dir); err != nil {
			return h.failed("make "+path.Join(h.dir, s.rel), err)
		}
		if s.file == "" {
			continue
		}
		what, err := dir.Look(s.rel)
		if err != nil {
			return h.failed("look at "+dir.Join(s.rel), err)
		}
		s.record.Output = what.Stamp
		d.known.Files[s.file] = s.record
	}
	if err := h.writeJSON(dir, recordName, d.known); err != nil {
		return err
	}
	d.steps = nil
	return nil
}

// release closes what Prepare opened.
func (h *held) release() {
	if h.open != nil {
		h.open.Close()
	}
	if h.live != nil {
		h.live.Close()
	}
	h.open, h.live = nil, nil
}

// create makes a new instance under a temporary name, and renames it when it is complete. On failure nothing of it
// stays.
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
	lock, err := in.flock(parent, unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer lock.Close()
	sweep(parent)
	if in.draft, err = look(in.place); err != nil || in.exists {
		return err // made by another launch meanwhile, and checked by look
	}
	temporary := path.Join(parent, unfinished+rand.Text())
	if err = in.fill(temporary); err == nil {
		err = in.firstMemory()
	}
	if err == nil {
		if err = os.Rename(temporary, in.Dir); err == nil {
			in.exists = true
			return nil
		}
		err = in.failed("make "+in.Dir, err)
	}
	return errors.Join(err, beneath.RemoveAll(temporary))
}

// unfinished is the prefix of an instance's name while it is being made.
const unfinished = ".new-"

// fill makes a complete instance at a path, and locks it as in use.
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
	return in.apply(dir, &in.draft)
}

// firstMemory makes a CLAUDE.md below Home for a user who has none. The agent's own holds the same text by now.
func (p place) firstMemory() error {
	for _, name := range agenthome.MemoryFiles(p.req.Request) {
		if _, err := os.Stat(name); err == nil || !missing(err) {
			return nil
		}
	}
	home, err := beneath.Open(p.req.Home)
	if err != nil {
		return p.failed("open "+p.req.Home, err)
	}
	defer home.Close()
	err = home.Create(agenthome.MemoryName, []byte(agenthome.FirstMemory), 0o644)
	if err != nil && !errors.Is(err, fs.ErrExist) { // a link that leads nowhere is the user's own affair
		return p.failed("make "+home.Join(agenthome.MemoryName), err)
	}
	return nil
}
