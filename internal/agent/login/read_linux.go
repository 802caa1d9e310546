package login

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
)

// Examine looks at a user's file before a launch. It reports whether it is to be
// lent; a note says why nothing enters of a file that is there.
func Examine(host string) (found bool, note string, err error) {
	dir, err := beneath.Open(filepath.Dir(host))
	if err != nil {
		return false, "", unreadable(host, err)
	}
	defer dir.Close()
	switch r := read(dir, filepath.Base(host)); {
	case errors.Is(r.fault, fs.ErrPermission):
		return false, "", unreadable(host, r.fault)
	case r.fault != nil:
		return false, fmt.Sprintf("your login %s does not enter: %v", host, r.fault), nil
	case !r.there:
		return false, "", nil
	case unix.Access(dir.Path(), unix.W_OK) != nil:
		return false, fmt.Sprintf(
			"your login %s does not enter: its folder cannot be written, and a renewed login could not come back",
			host), nil
	case !r.good():
		return true, fmt.Sprintf("your login %s has ended: log in anew, outside or inside", host), nil
	default:
		return true, "", nil
	}
}

// FileName is Claude Code's file of credentials, in the user's ~/.claude and in
// the agent's.
const FileName = ".credentials.json"

const (
	agentHome   = ".claude"
	maxFile     = 1 << 20 // bytes
	privateFile = 0o600

	// A writer dies or is done before its lock goes stale.
	patience = 16 * time.Second
	// An agent may hold the lock of its own folder as long as it likes.
	patienceInside = time.Second
)

// reading is what was found of one file.
type reading struct {
	login
	there   bool  // it has a login, if one that has ended
	fault   error // it is there and cannot be used
	content []byte
}

// read reads a file.
func read(dir *beneath.Folder, name string) (r reading) {
	r.content, r.fault = dir.Read(name, maxFile)
	if errors.Is(r.fault, fs.ErrNotExist) {
		r.fault = nil
		return r
	}
	if r.fault == nil {
		r.login, r.there, r.fault = parse(r.content)
	}
	return r
}

func unreadable(name string, err error) error {
	remedy := "look at " + name + "; when it is moved away you log in anew"
	if errors.Is(err, fs.ErrPermission) {
		remedy = "make it yours again: `chown $USER " + name + " && chmod 600 " + name + "`"
	}
	return &diag.Error{Op: "read your login " + name, Err: diag.Cause(err), Remedy: remedy}
}
