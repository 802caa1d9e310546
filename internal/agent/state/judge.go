package state

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"syscall"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
)

// find opens the instance's folder, nil when there is none. Every component
// from Home to it is checked: a real folder, the user's own, closed to others.
func (in *Instance) find(home *beneath.Folder) (dir *beneath.Folder, err error) {
	top, err := home.Look(".")
	if err != nil {
		return nil, in.failed("look at "+home.Path(), err)
	}
	const writableByOthers = 0o022
	if top.UID != uint32(in.req.UID) || top.Perm&writableByOthers != 0 {
		return nil, refused(home.Path(), "it must be yours and not writable by others",
			"chmod go-w "+home.Path()+", or set CLAUDEBOX_HOME")
	}
	at := ""
	for name := range strings.SplitSeq(in.rel, "/") {
		at = path.Join(at, name)
		what, err := home.Look(at)
		if err != nil {
			return nil, in.failed("look at "+home.Join(at), err)
		}
		if what.Kind == beneath.Absent {
			return nil, nil
		}
		if err := in.judgeFolder(home.Join(at), what); err != nil {
			return nil, err
		}
	}
	dir, err = home.Sub(in.rel)
	if err != nil && !errors.Is(err, os.ErrNotExist) { // else it was removed a moment ago
		return nil, in.failed("open "+in.Dir, err)
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
func (in *Instance) judge(dir *beneath.Folder) error {
	if what, err := in.mended(dir, agentHome); err != nil {
		return err
	} else if err := in.judgeFolder(dir.Join(agentHome), what); err != nil {
		return err
	}
	_, err := in.mended(dir, cacheName)
	return err
}

// mended looks at a folder, after giving it back the mode that it had.
func (in *Instance) mended(dir *beneath.Folder, rel string) (beneath.Entry, error) {
	what, err := dir.Look(rel)
	if err != nil {
		return what, in.failed("look at "+dir.Join(rel), err)
	}
	if what.Kind == beneath.Dir && what.UID == uint32(in.req.UID) && what.Perm&0o777 != privateDir {
		if err := dir.Chmod(rel, privateDir); err != nil {
			return what, in.failed("open "+dir.Join(rel), err)
		}
		dir.Hold(rel)
		what.Perm = privateDir
	}
	return what, nil
}

func (in *Instance) judgeFolder(name string, what beneath.Entry) error {
	afresh := "move it away: the project then starts afresh"
	switch {
	case what.Kind != beneath.Dir:
		return refused(name, "it is not a real folder", afresh)
	case what.UID != uint32(in.req.UID):
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
func (in *Instance) failed(op string, err error) error {
	e := &diag.Error{
		Op: op, Err: diag.Cause(err),
		Remedy: "look at " + in.Dir + "; when it is moved away the project starts afresh",
	}
	for _, r := range remedies {
		if errors.Is(err, r.cause) {
			e.Remedy = strings.ReplaceAll(r.text, "DIR", in.req.Home)
			break
		}
	}
	return e
}
