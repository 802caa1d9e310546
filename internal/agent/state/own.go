package state

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
)

// maxLinks is how many links the kernel follows in one path (MAXSYMLINKS).
const maxLinks = 40

// foreignError names a link on the way to a file of the user that an agent
// could have made: ~/.claude may lead into a folder that was a project once,
// a folder of dotfiles for one, and from there to any secret.
type foreignError struct{ link string }

func (e *foreignError) Error() string { return e.link + " is a link that an agent could have made" }

// own resolves a path of the user, as far as the links on the way are theirs:
// those in their home folder itself, in ~/.claude and in CLAUDEBOX_HOME, and
// those that only root or Nix can make. It fails with a [*foreignError] for
// others, else as lstat(2) does.
func (r Request) own(name string) (string, error) {
	homes := r.homes
	if homes.user == "" {
		homes = r.resolveHomes()
	}
	w := walk{trusted: []string{homes.user, homes.user + "/.claude", homes.state}}
	if rest, below := strings.CutPrefix(name, r.UserHome+"/"); below {
		w.at, w.rest = homes.user, components(rest)
	} else if rest, below := strings.CutPrefix(name, r.Home+"/"); below {
		w.at, w.rest = homes.state, components(rest)
	}
	for len(w.rest) > 0 {
		if err := w.step(); err != nil {
			return "", err
		}
	}
	return w.at, nil
}

// homes are the two folders that a path of the user begins with, free of
// links.
type homes struct{ user, state string }

func (r Request) resolveHomes() homes { return homes{canonical(r.UserHome), canonical(r.Home)} }

// canonical resolves the way to a folder that is the user's own.
func canonical(name string) string {
	if real, err := beneath.Canonical(name); err == nil {
		return real
	}
	return name
}

func components(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return r == '/' })
}

// walk is a path on its way to its end.
type walk struct {
	trusted []string // folders whose links count
	at      string   // free of links
	rest    []string // components yet to go
	links   int
}

// step takes one component.
func (w *walk) step() error {
	folder, next := w.at, filepath.Join(w.at, w.rest[0])
	w.rest = w.rest[1:]
	var st unix.Stat_t
	if err := unix.Lstat(next, &st); err != nil {
		return &fs.PathError{Op: "look at", Path: next, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		w.at = next
		return nil
	}
	if w.links++; w.links > maxLinks {
		return &fs.PathError{Op: "follow", Path: next, Err: syscall.ELOOP}
	}
	if !slices.Contains(w.trusted, folder) && !isRoots(next, st) {
		return &foreignError{next}
	}
	text, err := os.Readlink(next)
	if err != nil {
		return err
	}
	if filepath.IsAbs(text) {
		w.at = "/"
	}
	w.rest = append(components(text), w.rest...)
	return nil
}

// isRoots reports whether only root or Nix can make a file.
func isRoots(name string, st unix.Stat_t) bool {
	return strings.HasPrefix(name, "/nix/store/") || st.Uid == 0
}

// readOwn reads a file of the user: nil when there is none, or when the way to
// it is not theirs; then a note says so.
func (r Request) readOwn(name string) (content []byte, note string, err error) {
	real, err := r.own(name)
	var foreign *foreignError
	switch {
	case errors.As(err, &foreign):
		return nil, "your " + name + " does not enter: " + foreign.Error(), nil
	case err != nil && missing(err):
		return nil, "", nil
	case err != nil:
		return nil, "", err
	}
	dir, err := beneath.Open(filepath.Dir(real))
	if err != nil {
		return nil, "", err
	}
	defer dir.Close()
	content, err = dir.Read(filepath.Base(real), fileLimit)
	return slices.Clip(content), "", err
}

// readSources reads files of the user. Links are followed, for home-manager
// makes them, as far as they are the user's; notes name those that are not.
func (r Request) readSources(names []string) (contents [][]byte, notes []string, err error) {
	contents = make([][]byte, len(names))
	for i, name := range names {
		content, note, err := r.readOwn(name)
		if err != nil {
			return nil, nil, err
		}
		if contents[i] = content; note != "" {
			notes = append(notes, note)
		}
	}
	return contents, notes, nil
}

// missing reports whether a file is not there, unlike one that cannot be read.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// ownOrNew is [Request.own] for what may not be there yet.
func (r Request) ownOrNew(name string) (string, error) {
	if name == r.UserHome {
		return canonical(name), nil
	}
	real, err := r.own(name)
	if err == nil || !missing(err) {
		return real, err
	}
	above, err := r.ownOrNew(path.Dir(name))
	return path.Join(above, path.Base(name)), err
}
