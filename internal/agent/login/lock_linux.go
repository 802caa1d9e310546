package login

import (
	"errors"
	"io/fs"
	"time"

	"claudebox/internal/linux/beneath"
)

// Claude Code's locks beside its credentials. Each is a folder: who makes it
// has it, and one that was not touched for a time belongs to somebody who died
// (the npm package proper-lockfile).
const (
	refreshLock = ".oauth_refresh.lock" // held while a login is renewed
	writeLock   = ".storage-write.lock" // held while credentials are written
	// A third, named like the folder, lies beside it: see [locks].
)

// staleAfter is when each is given up.
func staleAfter(name string) time.Duration {
	if name == writeLock {
		return 15 * time.Second
	}
	return time.Minute
}

const lockMode = 0o755

// held is a lock of ours.
type held struct {
	dir   *beneath.Folder
	name  string
	stamp beneath.Stamp
}

// claim takes a lock; nil when another holds it.
func claim(dir *beneath.Folder, name string) (*held, error) {
	err := dir.Mkdir(name, lockMode)
	if errors.Is(err, fs.ErrExist) && !isHeld(dir, name) && dir.Remove(name) == nil {
		err = dir.Mkdir(name, lockMode)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	what, err := dir.Look(name)
	return &held{dir, name, what.Stamp}, err
}

// isHeld reports whether somebody who lives holds a lock.
func isHeld(dir *beneath.Folder, name string) bool {
	what, err := dir.Look(name)
	return err != nil || what.Kind == beneath.Dir && time.Since(time.Unix(0, what.Stamp.Change)) < staleAfter(name)
}

// release gives a lock back, unless it was taken from us meanwhile. The nil
// lock is nobody's.
func (h *held) release() {
	if h == nil {
		return
	}
	if what, err := h.dir.Look(h.name); err == nil && what.Stamp.Ino == h.stamp.Ino {
		_ = h.dir.Remove(h.name) // what stays goes stale
	}
}

// writePause is how long to wait before a lock is tried again. Claude Code
// holds it for milliseconds.
const writePause = 20 * time.Millisecond

var errBusy = errors.New("the lock " + writeLock + " is held by Claude Code")

// whileWriting does something under the lock of a folder's credentials. It
// waits up to the given time.
func whileWriting(dir *beneath.Folder, patience time.Duration, do func() error) error {
	for end := time.Now().Add(patience); ; time.Sleep(writePause) {
		lock, err := claim(dir, writeLock)
		if err != nil {
			return err
		}
		if lock != nil {
			defer lock.release()
			return do()
		}
		if time.Now().After(end) {
			return errBusy
		}
	}
}
