package state

import (
	"crypto/rand"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
)

// Folder is where the kept instances of a CLAUDEBOX_HOME lie, one folder each.
func Folder(home string) string { return path.Join(home, instances) }

// AgentHome is the agent's home below an instance.
const AgentHome = agentHome

// IsOf reports whether an instance of that name belongs to the project with that
// canonical root.
func IsOf(id, root string) bool { return strings.TrimSuffix(id, hostSuffix) == ID(root) }

// RootOf is the canonical root of the project that an instance belongs to, as
// it was noted; empty when that is not known.
func RootOf(dir *beneath.Folder) string { return readRecord(dir).Root }

// LastUsed is when a session began last; zero when that is not known.
func LastUsed(dir *beneath.Folder) time.Time {
	info, err := os.Lstat(dir.Join(liveName))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
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
	at := path.Join(Folder(home), id)
	failed := func(err error) error {
		return &diag.Error{
			Op: "remove " + at, Err: diag.Cause(err),
			Remedy: "look at it, and remove what is left by hand",
		}
	}
	// The folder of instances is locked while one is made, and so it is here.
	lock, err := place{home: home, dir: at}.flock(Folder(home), unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer lock.Close()
	claimed, free := claim(at)
	defer claimed.Close()
	if !free {
		return failed(ErrLive)
	}
	gone := path.Join(Folder(home), unfinished+rand.Text())
	if err := os.Rename(at, gone); err != nil {
		return failed(err)
	}
	if err := removeAll(gone); err != nil {
		return failed(err)
	}
	return nil
}
