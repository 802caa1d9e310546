package state

import (
	"errors"
	"os"
	"path"

	"golang.org/x/sys/unix"

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
		in.exists = held // else it was pruned a moment ago
	}
	if len(in.writes) > 0 {
		if err := in.update(); err != nil {
			return err
		}
	}
	if err := makeConversations(in.conversations); err != nil {
		return err
	}
	if err := in.keepOutside(); err != nil {
		return err
	}
	if err := in.touch(); err != nil || in.approval == nil {
		return err
	}
	return in.writeLines(approvedName, in.approval)
}

// update brings an existing instance up to date under its lock. What Look saw
// may be old by now, so it looks again.
func (in *Instance) update() error {
	lock, err := in.flock(in.Dir, unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer lock.Close()
	if in.draft, err = compare(in.req, in.place, in.open); err != nil {
		return err
	}
	return in.apply(in.open, in.req, &in.draft)
}

// held is an instance that this process uses.
type held struct {
	place
	open *beneath.Folder // its folder, from Prepare to Close
	live *os.File        // locked as one in use
}

// hold opens the instance and locks it as one in use; false when it is no
// longer there.
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
		return true, nil // made, and locked since before others could see it
	}
	return h.lock()
}

// lock locks the open instance as one in use; false when it was removed, and
// perhaps made anew, since it was opened.
func (h *held) lock() (is bool, err error) {
	h.live, err = h.flock(h.open.Join(liveName), unix.LOCK_SH)
	if !h.isStill(h.open) {
		h.release()
		return false, nil
	}
	return true, err
}

// apply does every planned step, takes the stamps and writes the record.
func (h *held) apply(dir *beneath.Folder, req Request, d *draft) error {
	next := d.known
	if next.Root = ""; req.Kind != Shared {
		next.Root = req.Root
	}
	for _, w := range d.writes {
		if err := w.do(dir); err != nil {
			return h.failed("make "+path.Join(h.dir, w.rel), err)
		}
		if w.seen.Name == "" {
			continue
		}
		what, err := dir.Look(w.rel)
		if err != nil {
			return h.failed("look at "+dir.Join(w.rel), err)
		}
		w.seen.Output = what.Stamp
		next = next.with(w.seen)
	}
	if err := dir.Rewrite(recordName, next.encode(), privateFile); err != nil {
		return h.failed("make "+path.Join(h.dir, recordName), err)
	}
	d.known, d.writes = next, nil
	return nil
}

// touch marks the instance as used now: the time of the lock's file says when
// that was last.
func (h *held) touch() error {
	now := []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}
	if err := unix.UtimesNanoAt(h.open.FD(), liveName, now, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return h.failed("mark "+h.dir+" as used", err)
	}
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
