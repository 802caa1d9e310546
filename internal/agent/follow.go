package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"claudebox/internal/diag"
)

// found is a file at the end of all links.
type found struct {
	name  string   // free of links
	names []string // the links that led to it by its last component, free of links above, then name
	info  fs.FileInfo
	fault error // why the way to it, or the file, cannot be trusted; nil: it can
}

// maxLinks is how many links the kernel follows in one path (MAXSYMLINKS).
const maxLinks = 40

// walk is a path on its way to its end.
type walk struct {
	files Files
	judge func(name string, info fs.FileInfo) error
	at    string   // free of links
	rest  []string // components yet to go
	links int
	found found
}

// follow resolves every link of name and judges every component on the way:
// whoever may write one of them decides what is run.
func (f *finder) follow(name string) (found, error) {
	w := &walk{files: f.Files, judge: f.fault, rest: append([]string{"/"}, components(name)...)}
	for len(w.rest) > 0 {
		if err := w.step(); err != nil {
			return found{}, err
		}
	}
	w.found.name = w.at
	w.found.names = append(w.found.names, w.at)
	return w.found, nil
}

func components(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return r == '/' })
}

// step takes one component.
func (w *walk) step() error {
	component := w.rest[0]
	w.rest = w.rest[1:]
	next := path.Join(w.at, component)
	info, err := w.files.Lstat(next)
	if err != nil {
		return err
	}
	if w.found.fault == nil {
		w.found.fault = w.judge(next, info)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return w.link(next)
	}
	w.at, w.found.info = next, info
	return nil
}

// link replaces a link by what it says.
func (w *walk) link(name string) error {
	if w.links++; w.links > maxLinks {
		return &fs.PathError{Op: "follow", Path: name, Err: syscall.ELOOP}
	}
	target, err := w.files.Readlink(name)
	if err != nil {
		return err
	}
	if len(w.rest) == 0 {
		w.found.names = append(w.found.names, name)
	}
	if path.IsAbs(target) {
		w.at = "/"
	}
	w.rest = slices.Concat(components(target), w.rest)
	return nil
}

// staffGroup is Debian's group for those who may change /usr/local, which
// makes them as good as root for what is found there.
const staffGroup = 50

// fault says why a file or folder on the way to a program cannot be trusted;
// nil when only root and the user may write it. The store is Nix's to guard.
func (f *finder) fault(name string, info fs.FileInfo) error {
	if within(name, store) {
		return nil
	}
	if within(name, f.Project) {
		return fmt.Errorf("%s lies in the project, where any agent could have written it", name)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("bug: no owner known for " + name)
	}
	switch uid, gid, mode := int(owner.Uid), int(owner.Gid), info.Mode(); {
	case uid != 0 && uid != f.UID:
		return fmt.Errorf("%s belongs to user %d, who could change it", name, uid)
	case mode&fs.ModeSymlink != 0, mode.IsDir() && mode&fs.ModeSticky != 0:
		return nil // a link has no mode of its own; in a sticky folder only owners replace files
	case mode&0o002 != 0:
		return fmt.Errorf("everyone may write %s", name)
	case mode&0o020 != 0 && !f.ownGroup(gid):
		return fmt.Errorf("group %d may write %s", gid, name)
	}
	return nil
}

// ownGroup reports whether only the user and administrators are in the group:
// the user's private one, by the custom that both have one number.
func (f *finder) ownGroup(gid int) bool {
	return gid == 0 || gid == staffGroup || gid == f.GID && gid == f.UID
}

// trusted resolves name and refuses what others could have written.
func (f *finder) trusted(name string) (found, error) {
	file, err := f.follow(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found{}, &diag.Error{Op: "find " + name, Err: ErrNotFound, Remedy: f.howToGet(path.Base(name))}
	case err != nil:
		return found{}, &diag.Error{Op: "find " + name, Err: err}
	case file.fault != nil:
		return found{}, &diag.Error{
			Op: "trust " + name, Err: file.fault,
			Remedy: "install it where only you or root may write, outside the project, or name another in agent: " +
				"{command: [...]}",
		}
	}
	return file, nil
}

// mayExecute asks the mode, as the kernel will for the user and their primary
// group.
func (f *finder) mayExecute(file found) bool {
	owner, ok := file.info.Sys().(*syscall.Stat_t)
	bits := file.info.Mode().Perm()
	switch {
	case !ok:
		return false
	case int(owner.Uid) == f.UID:
		return bits&0o100 != 0
	case int(owner.Gid) == f.GID:
		return bits&0o010 != 0
	}
	return bits&0o001 != 0
}
