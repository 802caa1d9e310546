package state

import (
	"crypto/rand"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
)

// Close ends the use of an instance, and removes an ephemeral one. The agent has written to its home since it was
// made. Files that still hold our answers are recorded with their new stamps, so that the next launch need not read
// them again. Close is safe after a Prepare that failed or was not called.
func (in *Instance) Close() error {
	if in.held == nil || in.open == nil {
		return nil
	}
	defer in.release()
	in.endLogin()
	if in.req.Kind == Host {
		if err := in.endHost(); err != nil {
			return err
		}
	}
	if in.req.Kind != Ephemeral {
		_ = in.restamp() // on failure the next launch reads more, and says what is wrong
		return nil
	}
	if err := beneath.RemoveAll(in.Dir); err != nil {
		return in.failed("remove "+in.Dir, err)
	}
	return nil
}

// restamp compares the files that were written since they were recorded, and records those that are right all the same.
// Files that have to be written are left to the next launch.
func (in *Instance) restamp() error {
	written := slices.DeleteFunc(slices.Clone(in.req.Files()), func(f agenthome.File) bool {
		what, err := in.open.Look(path.Join(agentHome, f.Name))
		return err == nil && what.Stamp == in.known.Files[f.Name].Output
	})
	if len(written) == 0 {
		return nil
	}
	c := comparison{place: in.place, now: in.open, draft: draft{exists: true, known: readRecord(in.open)}}
	for _, f := range written {
		if err := c.file(f); err != nil {
			return err
		}
	}
	c.steps = slices.DeleteFunc(c.steps, func(s step) bool { return s.do != nil })
	if len(c.steps) == 0 {
		return nil
	}
	lock, err := in.flock(in.Dir, unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer lock.Close()
	return in.apply(in.open, &c.draft)
}

// sweep removes from a folder of instances what a killed claudebox left:
// unfinished ones, and ephemeral ones that no session uses. What cannot be
// removed stays for the next time.
func sweep(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		left := strings.HasPrefix(e.Name(), unfinished) || filepath.Base(parent) == ephemeral
		at := filepath.Join(parent, e.Name())
		if left && e.IsDir() && !Live(at) {
			_ = beneath.RemoveAll(at)
		}
	}
}

// Live reports whether a session holds the instance in a folder.
func Live(at string) bool {
	lock, free := claim(at)
	lock.Close()
	return !free
}

// claim takes the lock that sessions share, exclusively, so that none can use the instance. free is false if a
// session uses it. An instance that was never used has no such lock: then lock is nil, and free is true.
func claim(at string) (lock *os.File, free bool) {
	lock, err := os.OpenFile(filepath.Join(at, liveName), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, true
	}
	return lock, unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

// ErrLive is returned for an instance that a session uses.
var ErrLive = errors.New("a session uses it")

// Remove removes the instance called id with all that is in it, or fails with [ErrLive] if a session uses it. The
// instance is renamed first, so that it disappears at once: a launch that was about to use it makes a new one, and
// what a crash leaves of it is removed later (sweep). home is CLAUDEBOX_HOME, below which no link is followed.
func Remove(home, id string) error {
	home = beneath.LeadsOrClean(home)
	at := path.Join(home, instances, id)
	failed := func(err error) error {
		return diag.Wrap("remove "+at, err, "look at it, and remove what is left by hand")
	}
	// The folder of instances is locked, as it is while an instance is made.
	of := place{dir: at}
	of.req.Home = home
	lock, err := of.flock(path.Join(home, instances), unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer lock.Close()
	claimed, free := claim(at)
	defer claimed.Close()
	if !free {
		return failed(ErrLive)
	}
	gone := path.Join(home, instances, unfinished+rand.Text())
	if err := os.Rename(at, gone); err != nil {
		return failed(err)
	}
	if err := beneath.RemoveAll(gone); err != nil {
		return failed(err)
	}
	return nil
}
