package state

import (
	"errors"
	"os"
	"path"
	"time"

	"claudebox/internal/linux/beneath"
	"golang.org/x/sys/unix"
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
	if err := in.makeConversations(); err != nil {
		return err
	}
	if err := in.keepOutside(); err != nil {
		return err
	}
	return in.use()
}

// hold opens the instance and locks it as one in use; false when it is no
// longer there.
func (in *Instance) hold() (bool, error) {
	dir, err := beneath.Open(in.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, in.failed("open "+in.Dir, err)
	}
	in.dir = dir
	if in.live != nil {
		return true, nil // made, and locked since before others could see it
	}
	return in.lock()
}

// lock locks the open instance as one in use; false when it was removed, and
// perhaps made anew, since it was opened.
func (in *Instance) lock() (held bool, err error) {
	in.live, err = in.flock(in.dir.Join(liveName), unix.LOCK_SH)
	if !in.inPlace(in.dir) {
		in.release()
		return false, nil
	}
	return true, err
}

// inPlace reports whether an open folder is still the one of the instance's name:
// [Remove] renames one away before it removes it. When that cannot be told, it
// is.
func (in *Instance) inPlace(dir *beneath.Folder) bool {
	open, err := dir.Look(".")
	if err != nil {
		return true
	}
	var now unix.Stat_t
	if err := unix.Lstat(in.Dir, &now); err != nil {
		return !errors.Is(err, unix.ENOENT)
	}
	return open.Stamp.Ino == now.Ino
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
	next := in.known
	if next.Root = ""; in.req.Kind != Shared {
		next.Root = in.req.Root
	}
	for _, w := range in.writes {
		if err := w.do(dir); err != nil {
			return in.failed("make "+path.Join(in.Dir, w.rel), err)
		}
		if w.seen.Name == "" {
			continue
		}
		what, err := dir.Look(w.rel)
		if err != nil {
			return in.failed("look at "+dir.Join(w.rel), err)
		}
		w.seen.Output = what.Stamp
		next = next.with(w.seen)
	}
	if err := dir.Rewrite(recordName, next.encode(), privateFile); err != nil {
		return in.failed("make "+path.Join(in.Dir, recordName), err)
	}
	in.known, in.writes = next, nil
	return nil
}

// use marks the instance as used now: the time of the lock's file says when
// that was last.
func (in *Instance) use() error {
	if err := unix.UtimesNanoAt(in.dir.FD(), liveName, nowTwice(), unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return in.failed("mark "+in.Dir+" as used", err)
	}
	return in.saveApproval()
}

// nowTwice leaves the time to the kernel's clock.
func nowTwice() []unix.Timespec {
	return []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}
}

// lockPatience is how long to wait for a lock. It is held for milliseconds; who
// waits longer hears of it.
const lockPatience = 4 * time.Second

var errBusy = errors.New("another claudebox has held it for some seconds")

// flock opens a file or folder and locks it. Who waits does so in the kernel:
// trying now and again would leave the lock to whoever comes by just then.
func (in *Instance) flock(name string, how int) (*os.File, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, in.failed("open "+name, err)
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
			return nil, in.failed("lock "+name, errBusy)
		}
	}
	if err != nil {
		f.Close()
		return nil, in.failed("lock "+name, err)
	}
	return f, nil
}
