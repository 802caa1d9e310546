package aftermath

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/linux/identity"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/project"
)

const (
	sessions   = "sessions"
	recordForm = "claudebox session 9\n" // before the record; another form, another number
	privateDir = 0o700
)

// record is what is kept of a session while it lives.
type record struct {
	Began         int64 // nanoseconds since 1970
	Scope         project.Scope
	Inode         uint64 // of the project's folder
	ID            identity.ID
	Before        git.Snapshot
	OpenConfig    bool     // the profile lets the agent change the user's own configurations
	Tracked       []string // what git's indexes held and no session had put there
	Covered       []string // what was read-only or hidden, relative to the project
	Hidden        []string // what of it was hidden
	Inodes        []uint64 // of what was covered
	Closed        []string // folders that could not be read
	Cut           bool     // the project was too large to be looked at as a whole
	Instance      string   // the agent's own folder
	Conversations []string // the user's folders of them where the agent writes

	beside []record // sessions that live while this one is looked after
}

// shared reports whether a session that lives has a path, too. What is needed
// there while something runs is left to the end of that one.
func (was record) shared(file string) bool {
	return slices.ContainsFunc(was.beside, func(r record) bool {
		return pathname.Below(file, r.Scope.Path) || r.Scope.Common != "" && pathname.Below(file, r.Scope.Common)
	})
}

func (was record) encode() []byte { return append([]byte(recordForm), cachefile.Encode(was)...) }

// write keeps a record in a locked file: one that is free, or a new one. To
// make a file takes ten times as long as to write to it. The lock goes with
// this process.
func (was record) write(home string, free []string) (*os.File, error) {
	f, err := slot(path.Join(home, sessions), free)
	if err != nil {
		return nil, failed(path.Join(home, sessions), err)
	}
	if _, err := f.WriteAt(was.encode(), 0); err != nil {
		release(f)
		f.Close()
		return nil, failed(f.Name(), err)
	}
	return f, nil
}

// onDiskAfter is when a record goes to the disk: a power cut must not turn what
// the agent made into the user's. It takes up to some ten milliseconds, for
// which a start, or a short command, is not to wait.
const onDiskAfter = 20 * time.Millisecond

// onDisk waits for the disk, for the file and its name in the folder. A record
// needs no second name to be whole: what a power cut leaves of one that is
// written for the first time is none, and by then the agent has hardly begun.
func onDisk(file string) {
	for _, name := range []string{file, path.Dir(file)} {
		if f, err := os.Open(name); err == nil { // not the locked one: its lock is to go when it is closed
			_ = f.Sync() // whoever ends the session does not need it
			f.Close()
		}
	}
}

// slot takes the first of the files that are still free, or makes one.
func slot(dir string, free []string) (*os.File, error) {
	for _, file := range free {
		f, locked, err := lock(file)
		if err != nil {
			continue
		}
		if info, err := f.Stat(); locked && err == nil && info.Size() == 0 {
			return f, nil
		}
		f.Close() // another launch has taken it
	}
	if err := os.Mkdir(dir, privateDir); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	for {
		f, err := os.OpenFile(path.Join(dir, rand.Text()[:16]), os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return f, nil
		}
		f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, err
		}
		// another launch has found it, and takes it for a free one
	}
}

// lock opens a record's file, and locks it if no session does.
func lock(file string) (f *os.File, locked bool, err error) {
	fd, err := unix.Open(file, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false, err
	}
	_ = unix.SetNonblock(fd, false) // else the runtime prepares for waiting, which it need not before a start
	f = os.NewFile(uintptr(fd), file)
	return f, unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil, nil
}

// release makes a record's file free.
func release(f *os.File) {
	if f.Truncate(0) != nil {
		os.Remove(f.Name())
	}
}

func failed(file string, err error) error {
	return &diag.Error{
		Op: "note what is in the project before the session in " + file, Err: err,
		Remedy: "make room there, and the folder writable for you",
	}
}

// others reads the records that are there. The files of sessions that are dead
// are handed over locked. Those that hold nothing are free, or of a session that
// is about to begin.
func others(home string) (live []record, dead []*os.File, free []string) {
	dir := path.Join(home, sessions)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, nil
	}
	for _, e := range entries {
		file := path.Join(dir, e.Name())
		if isEmpty(file) {
			free = append(free, file)
			continue
		}
		f, locked, err := lock(file)
		if err != nil {
			continue
		}
		if locked {
			dead = append(dead, f)
			continue
		}
		if r, ok := read(f); ok {
			live = append(live, r)
		}
		f.Close()
	}
	return live, dead, free
}

func isEmpty(file string) bool {
	var st unix.Stat_t
	return unix.Lstat(file, &st) == nil && st.Size == 0
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// read decodes a record. One that was cut short by the end of the machine
// tells nothing.
func read(f *os.File) (record, bool) {
	var r record
	content, err := io.ReadAll(f)
	if err != nil {
		return record{}, false
	}
	body, ok := bytes.CutPrefix(content, []byte(recordForm))
	return r, ok && cachefile.Decode(body, &r) && path.IsAbs(r.Scope.Path)
}

// inherited takes, of what lies where another session lives or was not looked
// after, what that session saw: what its agent has made is no user's.
func inherited(before git.Snapshot, others []record) git.Snapshot {
	for _, r := range others {
		in := func(at string) bool {
			return pathname.Below(at, r.Scope.Path) || r.Scope.Common != "" && pathname.Below(at, r.Scope.Common)
		}
		out := func(at string) bool { return !in(at) }
		before = before.Without(in).And(r.Before.Without(out))
	}
	return before
}
