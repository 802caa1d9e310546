package login

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
)

// Claude Code's locks beside its credentials, as the npm package proper-lockfile makes them. Each is a folder: the
// process that creates it holds the lock. A lock not touched for a while is stale: its holder has died.
const (
	refreshLock = ".oauth_refresh.lock" // held while a login is renewed
	writeLock   = ".storage-write.lock" // held while credentials are written
	// A third one lies beside the folder of the credentials and has its name with ".lock", see [whileRenewing].
)

// whileRenewing calls do while holding the locks that Claude Code takes to renew a login, in its order: refreshLock
// in the folder of f, then the lock beside that folder, which older versions take. It waits for them until ctx ends,
// and then returns [errBusy]. The second lock is taken only if f is called [FileName].
func whileRenewing(ctx context.Context, f *file, do func() error) error {
	lock, err := claimWaiting(ctx, f.dir, refreshLock)
	if err != nil {
		return err
	}
	defer lock.release()
	if f.name == FileName {
		folder := f.dir.Path()
		beside, err := beneath.Open(filepath.Dir(folder))
		if err != nil {
			return err
		}
		defer beside.Close()
		older, err := claimWaiting(ctx, beside, filepath.Base(folder)+".lock")
		if err != nil {
			return err
		}
		defer older.release()
	}
	return do()
}

// whileWriting calls do while holding the lock for writing the credentials in dir. It waits for the lock for at most
// patience, and then returns [errBusy].
func whileWriting(dir *beneath.Folder, patience time.Duration, do func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lock, err := claimWaiting(ctx, dir, writeLock)
	if err != nil {
		return err
	}
	defer lock.release()
	return do()
}

// held is a lock that this process holds.
type held struct {
	dir   *beneath.Folder
	name  string
	stamp beneath.Stamp
	stop  chan struct{} // closed to end [held.refresh]
}

var errBusy = errors.New("another program has held its lock for long")

// claimWaiting takes a lock. While another process holds the lock it waits, until ctx ends, and then returns
// [errBusy]. Claude Code holds writeLock for milliseconds.
func claimWaiting(ctx context.Context, dir *beneath.Folder, name string) (*held, error) {
	const pause = 20 * time.Millisecond
	for {
		lock, err := claim(dir, name)
		if lock != nil || err != nil {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, errBusy
		case <-time.After(pause):
		}
	}
}

// claim tries once to take a lock, replacing a stale one. It returns nil, nil if another process holds it.
func claim(dir *beneath.Folder, name string) (*held, error) {
	const mode = 0o755
	err := dir.Mkdir(name, mode)
	if errors.Is(err, fs.ErrExist) && !isHeld(dir, name) && dir.Remove(name) == nil {
		err = dir.Mkdir(name, mode)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	what, err := dir.Look(name)
	if err != nil {
		return nil, err
	}
	h := &held{dir, name, what.Stamp, make(chan struct{})}
	go h.refresh()
	return h, nil
}

// isHeld reports whether a lock is there and not stale. If that cannot be told, it returns true.
func isHeld(dir *beneath.Folder, name string) bool {
	stale := time.Minute
	if name == writeLock {
		stale = 15 * time.Second
	}
	what, err := dir.Look(name)
	return err != nil || what.Kind == beneath.Dir && time.Since(time.Unix(0, what.Stamp.Change)) < stale
}

// refresh touches the lock every few seconds until [held.release], so that the lock does not go stale.
func (h *held) refresh() {
	const touch = 5 * time.Second
	ticker := time.NewTicker(touch)
	defer ticker.Stop()
	for {
		select {
		case <-h.stop:
			return
		case <-ticker.C:
		}
		_ = unix.UtimesNanoAt(h.dir.FD(), h.name, nil, unix.AT_SYMLINK_NOFOLLOW) // if this fails the lock goes stale
	}
}

// release removes the lock, unless another process has replaced it meanwhile.
func (h *held) release() {
	close(h.stop)
	if what, err := h.dir.Look(h.name); err == nil && what.Stamp.Ino == h.stamp.Ino {
		_ = h.dir.Remove(h.name) // if this fails the lock goes stale
	}
}
