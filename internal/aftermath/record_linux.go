package aftermath

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/pathname"
	"claudebox/internal/project"
)

const (
	sessions   = "sessions"
	version    = 2
	privateDir = 0o700
)

// record is what is kept of a session while it lives.
type record struct {
	Version int               `json:"version"`
	Began   int64             `json:"began"` // nanoseconds since 1970
	Scope   project.Scope     `json:"scope"`
	Inode   uint64            `json:"inode"`   // of the project's folder
	Repos   []string          `json:"repos"`   // git folders of the user's own, by path
	Loose   map[string]string `json:"loose"`   // those that are not protected, and their state
	Tracked []string          `json:"tracked"` // what git's indexes held
	Covered []string          `json:"covered"` // what was read-only or hidden, relative to the project
	Inodes  []uint64          `json:"inodes"`  // of what was covered
	Closed  []string          `json:"closed"`  // folders that could not be read
	Cut     bool              `json:"cut"`     // the project was too large to be looked at as a whole

	Conversations []string `json:"conversations,omitempty"` // the user's folders of them where the agent writes
}

// write keeps a record in a locked file: one that is free, or a new one. To
// make a file takes ten times as long as to write to it. The lock goes with
// this process.
func (r record) write(home string, free []*os.File) (*os.File, error) {
	f, err := slot(path.Join(home, sessions), free)
	if err != nil {
		return nil, failed(path.Join(home, sessions), err)
	}
	content, err := json.Marshal(r)
	if err == nil {
		_, err = f.WriteAt(append(content, '\n'), 0)
	}
	if err != nil {
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

// slot takes the first of the free files, and closes the others.
func slot(dir string, free []*os.File) (*os.File, error) {
	if len(free) > 0 {
		for _, f := range free[1:] {
			f.Close()
		}
		return free[0], nil
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

// release makes a record's file free.
func release(f *os.File) {
	if f.Truncate(0) != nil {
		os.Remove(f.Name())
	}
}

func failed(file string, err error) error {
	return &diag.Error{Op: "note what is in the project before the session in " + file, Err: err, Remedy: "make room there, and the folder writable for you"}
}

// others reads the records that are there. The files of sessions that are dead,
// and those that are free, are handed over locked.
func others(home string) (live []record, dead, free []*os.File) {
	dir := path.Join(home, sessions)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, nil
	}
	for _, e := range entries {
		f, err := os.OpenFile(path.Join(dir, e.Name()), os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		locked := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
		info, err := f.Stat()
		switch {
		case locked && err == nil && info.Size() == 0:
			free = append(free, f)
		case locked:
			dead = append(dead, f)
		default:
			if r, ok := read(f); ok {
				live = append(live, r)
			}
			f.Close()
		}
	}
	return live, dead, free
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
	err := json.NewDecoder(f).Decode(&r)
	return r, err == nil && r.Version == version && path.IsAbs(r.Scope.Path)
}

// ours leaves those of the git folders that were there before any session that
// still lives: what another one's agent has made is no user's.
func ours(repos []string, live []record) []string {
	return slices.DeleteFunc(slices.Clone(repos), func(repo string) bool {
		return slices.ContainsFunc(live, func(r record) bool {
			_, loose := r.Loose[repo]
			within := pathname.Below(repo, r.Scope.Path) || r.Scope.Common != "" && pathname.Below(repo, r.Scope.Common)
			return within && !slices.Contains(r.Repos, repo) && !loose
		})
	})
}
