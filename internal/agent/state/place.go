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

// place is where an instance lies, and what it is asked for.
type place struct {
	req Request // its Home is free of links
	rel string  // the instance's folder below it
	dir string  // the same, whole
}

// find opens the instance's folder, nil when there is none. Every component
// from Home to it is checked: a real folder, the user's own, closed to others.
func (p place) find(home *beneath.Folder) (dir *beneath.Folder, err error) {
	top, err := home.Look(".")
	if err != nil {
		return nil, p.failed("look at "+home.Path(), err)
	}
	const writableByOthers = 0o022
	if top.UID != uint32(p.req.UID) || top.Perm&writableByOthers != 0 {
		return nil, refused(home.Path(), "it must be yours and not writable by others",
			"chmod go-w "+home.Path()+", or set CLAUDEBOX_HOME")
	}
	at := ""
	for name := range strings.SplitSeq(p.rel, "/") {
		at = path.Join(at, name)
		what, err := home.Look(at)
		if err != nil {
			return nil, p.failed("look at "+home.Join(at), err)
		}
		if what.Kind == beneath.Absent {
			return nil, nil
		}
		if err := p.judgeFolder(home.Join(at), what); err != nil {
			return nil, err
		}
	}
	dir, err = home.Sub(p.rel)
	if err != nil && !errors.Is(err, os.ErrNotExist) { // else it was removed a moment ago
		return nil, p.failed("open "+p.dir, err)
	}
	if dir != nil {
		dir.Hold(agentHome)
		dir.Hold(cacheName)
	}
	return dir, nil
}

// judge checks the agent's folders in the instance's likewise. The agent can
// close them, or open them to others, who do not get through the folder around
// them: their modes are mended.
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
			dir.Hold(rel)
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
	afresh := "move it away: the project then starts afresh"
	switch {
	case what.Kind != beneath.Dir:
		return refused(name, "it is not a real folder", afresh)
	case what.UID != uint32(p.req.UID):
		return refused(name, fmt.Sprintf("it belongs to user %d", what.UID), afresh)
	case what.Perm&0o777 != privateDir: // a folder may inherit the set-group bit
		return refused(name, fmt.Sprintf("its mode is %o", what.Perm), "chmod 700 "+name)
	}
	return nil
}

func refused(name, why, remedy string) error {
	return diag.Errorf("use "+name+" for the agent's home", remedy, "%s", why)
}

// remedies are what helps against a cause; in text DIR is the folder that
// state is kept in.
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

// failed adds the remedy that fits the cause.
func (p place) failed(op string, err error) error {
	e := diag.Wrap(op, err, "look at "+p.dir+"; when it is moved away the project starts afresh")
	for _, r := range remedies {
		if errors.Is(err, r.cause) {
			e.Remedy = strings.ReplaceAll(r.text, "DIR", p.req.Home)
			break
		}
	}
	return e
}

// isStill reports whether an open folder is still the one of the instance's name:
// [Remove] renames one away before it removes it. When that cannot be told, it
// is.
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

// lockPatience is how long to wait for a lock. It is held for milliseconds; who
// waits longer hears of it.
const lockPatience = 4 * time.Second

var errBusy = errors.New("another claudebox has held it for some seconds")

// flock opens a file or folder and locks it. Who waits does so in the kernel:
// trying now and again would leave the lock to whoever comes by just then.
func (p place) flock(name string, how int) (*os.File, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, p.failed("open "+name, err)
	}
	f := os.NewFile(uintptr(fd), name) // os.Open prepares the runtime for waiting first
	err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		locked := make(chan error, 1)
		go func() { locked <- unix.Flock(int(f.Fd()), how) }()
		select {
		case err = <-locked:
		case <-time.After(lockPatience):
			go func() { <-locked; f.Close() }() // not before: the number would be another file's
			return nil, p.failed("lock "+name, errBusy)
		}
	}
	if err != nil {
		f.Close()
		return nil, p.failed("lock "+name, err)
	}
	return f, nil
}
