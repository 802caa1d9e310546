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

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
)

// Close ends the use of an instance. The agent has written to its home since
// it was made; when our answers are still in it that is recorded, so that the
// next launch need not read the files again. An ephemeral instance goes.
// Close is safe after a Prepare that failed or never was.
func (in *Instance) Close() error {
	if in.work == nil || in.open == nil {
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
		_ = in.restamp() // without it the next launch reads more, and says what is wrong
		return nil
	}
	if err := removeAll(in.Dir); err != nil {
		return in.failed("remove "+in.Dir, err)
	}
	return nil
}

// restamp compares once more and writes the record if only stamps are new;
// what has to be written is left to the next launch.
func (in *Instance) restamp() error {
	if in.known.holds(in.open) {
		return nil
	}
	now, err := compare(in.place, in.open)
	if err != nil {
		return err
	}
	now.writes = slices.DeleteFunc(now.writes, func(w write) bool { return w.what != "" })
	if len(now.writes) == 0 {
		return nil
	}
	lock, err := in.flock(in.Dir, unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer lock.Close()
	return in.apply(in.open, &now)
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
			_ = removeAll(at)
		}
	}
}

// Live reports whether a session holds the instance in a folder.
func Live(at string) bool {
	claim, free := claim(at)
	claim.Close()
	return !free
}

// claim locks an instance against use, unless a session uses it; then it is
// not free. One that never was in use cannot be locked, and is free.
func claim(at string) (lock *os.File, free bool) {
	lock, err := os.OpenFile(filepath.Join(at, liveName), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, true
	}
	return lock, unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

// removeAll deletes an instance whatever the agent did to the modes of
// folders in it. No link is followed.
func removeAll(at string) error {
	if err := os.RemoveAll(at); err == nil {
		return nil
	}
	dir, err := beneath.Open(at)
	if err != nil {
		return err
	}
	defer dir.Close()
	openFolders(dir, ".", removeDepth)
	return os.RemoveAll(at)
}

// removeDepth bounds how deep closed folders are opened again.
const removeDepth = 100

func openFolders(dir *beneath.Folder, rel string, depth int) {
	if depth == 0 || dir.Chmod(rel, privateDir) != nil {
		return
	}
	names, err := dir.Names(rel, 1<<20)
	if err != nil {
		return
	}
	for _, name := range names {
		below := filepath.Join(rel, name)
		if what, err := dir.Look(below); err == nil && what.Kind == beneath.Dir {
			openFolders(dir, below, depth-1)
		}
	}
}

// ErrLive says that a session uses an instance.
var ErrLive = errors.New("a session uses it")

// Remove removes one instance with all that is in it, unless a session uses it
// ([ErrLive]). It is gone at once for everybody: a launch that was about to use
// it makes a new one, and what a crash leaves of it is swept later. No link is
// followed below home, the CLAUDEBOX_HOME.
func Remove(home, id string) error {
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	at := path.Join(home, instances, id)
	failed := func(err error) error {
		return diag.Wrap("remove "+at, err, "look at it, and remove what is left by hand")
	}
	// The folder of instances is locked while one is made, and so it is here.
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
	if err := removeAll(gone); err != nil {
		return failed(err)
	}
	return nil
}
