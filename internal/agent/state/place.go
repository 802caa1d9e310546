package state

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
)

// place is where an instance lies, and the request that it is for.
type place struct {
	req Request // its Home is free of links
	rel string  // the instance's folder below it
	dir string  // the instance's folder, absolute
}

// writableByOthers are the bits of a mode by which others than the owner can change a folder.
const writableByOthers = 0o022

// find opens the instance's folder, nil when there is none. Every component
// from Home to it is checked: a real folder, the user's own, closed to others. One that others could only look into is
// closed; mended says so.
func (p place) find() (dir *beneath.Folder, mended []string, err error) {
	home, err := beneath.Open(p.req.Home)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil, nil
	case err != nil:
		return nil, nil, p.failed("open "+p.req.Home, err)
	}
	defer home.Close()
	top, err := home.Look(".")
	if err != nil {
		return nil, nil, p.failed("look at "+home.Path(), err)
	}
	if top.UID != uint32(p.req.UID) || top.Perm&writableByOthers != 0 {
		return nil, nil, refused(home.Path(), "it must be yours and not writable by others",
			"chmod go-w "+home.Path()+", or set CLAUDEBOX_HOME")
	}
	at := ""
	for name := range strings.SplitSeq(p.rel, "/") {
		at = path.Join(at, name)
		what, err := home.Look(at)
		if err != nil {
			return nil, mended, p.failed("look at "+home.Join(at), err)
		}
		if what.Kind == beneath.Absent {
			return nil, mended, nil
		}
		if p.isOnlySeen(what) {
			if err := home.Chmod(at, privateDir); err != nil {
				return nil, mended, p.failed("close "+home.Join(at), err)
			}
			mended = append(mended, fmt.Sprintf("%s had the mode %o, by which others could look into it; now it is 700",
				home.Join(at), what.Perm&0o777))
			what.Perm = privateDir
		}
		if err := p.judgeFolder(home.Join(at), what); err != nil {
			return nil, mended, err
		}
	}
	dir, err = home.Sub(p.rel)
	if err != nil && !errors.Is(err, os.ErrNotExist) { // else it was removed a moment ago
		return nil, mended, p.failed("open "+p.dir, err)
	}
	return dir, mended, nil
}

// isOnlySeen reports whether a folder of the user's has a mode that nobody else could have used to change it. If others
// could write to it, what they left there may count: such a folder is refused, see [place.judgeFolder].
func (p place) isOnlySeen(what beneath.Entry) bool {
	return what.Kind == beneath.Dir && what.UID == uint32(p.req.UID) && what.Perm&0o777 != privateDir &&
		what.Perm&writableByOthers == 0
}

// judge checks the folders of the instance that the agent writes to, as find checks those above. Their modes are not
// refused but repaired: the agent can change them, and others are kept out by the folder around them.
func (p place) judge(dir *beneath.Folder) error {
	for _, rel := range []string{agentHome, cacheName} {
		what, err := dir.Look(rel)
		if err != nil {
			return p.failed("look at "+dir.Join(rel), err)
		}
		if what.Kind == beneath.Dir && what.UID == uint32(p.req.UID) && what.Perm&0o777 != privateDir {
			if err := dir.Chmod(rel, privateDir); err != nil {
				return p.failed("open "+dir.Join(rel), err)
			}
			what.Perm = privateDir
		}
		if rel == agentHome {
			if err := p.judgeFolder(dir.Join(rel), what); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p place) judgeFolder(name string, what beneath.Entry) error {
	switch {
	case what.Kind != beneath.Dir:
		return refused(name, "it is not a real folder", startAfresh(name))
	case what.UID != uint32(p.req.UID):
		return refused(name, fmt.Sprintf("it belongs to user %d", what.UID), startAfresh(name))
	case what.Perm&0o777 != privateDir: // a folder may inherit the set-group bit
		return refused(name, fmt.Sprintf("its mode is %o", what.Perm), "chmod 700 "+name)
	}
	return nil
}

func startAfresh(name string) string { return "move " + name + " away: the project then starts afresh" }

func refused(name, why, remedy string) error {
	return diag.Errorf("use "+name+" for the agent's home", remedy, "%s", why)
}

// remedies are the remedies for some causes. DIR in a text stands for CLAUDEBOX_HOME.
var remedies = []struct {
	cause error
	text  string
}{
	{syscall.ENOSPC, "free some space in DIR, or set CLAUDEBOX_HOME to a folder on another disk"},
	{syscall.EDQUOT, "free some space in DIR, or set CLAUDEBOX_HOME to a folder on another disk"},
	{syscall.EROFS, "make DIR writable, or set CLAUDEBOX_HOME to a folder that is"},
	{syscall.EACCES, "make DIR writable for you, or set CLAUDEBOX_HOME to a folder that is"},
	{syscall.EPERM, "make DIR writable for you, or set CLAUDEBOX_HOME to a folder that is"},
	{syscall.ENOENT, "make the folder that DIR lies in, or set CLAUDEBOX_HOME"},
	{syscall.ENOTDIR, "set CLAUDEBOX_HOME to a folder"},
}

// failed returns an error for op with the remedy that fits its cause.
func (p place) failed(op string, err error) error {
	e := diag.Wrap(op, err, startAfresh(p.dir))
	for _, r := range remedies {
		if errors.Is(err, r.cause) {
			e.Remedy = strings.ReplaceAll(r.text, "DIR", p.req.Home)
			break
		}
	}
	return e
}

// isStill reports whether dir is still what the instance's path names: [Remove] renames an instance before it removes
// it. It returns true if that cannot be determined.
func (p place) isStill(dir *beneath.Folder) bool {
	open, err := dir.Look(".")
	if err != nil {
		return true
	}
	var now unix.Stat_t
	if err := unix.Lstat(p.dir, &now); err != nil {
		return !errors.Is(err, unix.ENOENT)
	}
	return open.Stamp.Ino == now.Ino
}

// lockPatience is how long to wait for a lock, which is normally held for milliseconds, before an error is returned.
const lockPatience = 4 * time.Second

var errBusy = errors.New("another claudebox has held it for some seconds")

// flock opens a file or folder and locks it. If another process holds the lock it waits for up to lockPatience, in
// the kernel: whoever only tries from time to time may find it taken by another each time. Closing the file unlocks
// it.
func (p place) flock(name string, how int) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, p.failed("open "+name, err)
	}
	err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		locked := make(chan error, 1)
		go func() { locked <- unix.Flock(int(f.Fd()), how) }()
		select {
		case err = <-locked:
		case <-time.After(lockPatience):
			go func() { <-locked; f.Close() }() // not before: another file could get its number, still in use
			return nil, p.failed("lock "+name, errBusy)
		}
	}
	if err != nil {
		f.Close()
		return nil, p.failed("lock "+name, err)
	}
	return f, nil
}
