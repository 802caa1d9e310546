package state

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"claudebox/internal/linux/beneath"
)

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
	at, rest := "/", name
	if below, is := strings.CutPrefix(name, r.UserHome+"/"); is {
		at, rest = homes.user, below
	} else if below, is := strings.CutPrefix(name, r.Home+"/"); is {
		at, rest = homes.state, below
	}
	trusted := []string{homes.user, homes.user + "/.claude", homes.state}
	return beneath.Follow(beneath.OnDisk{}, at, rest, func(name string, info fs.FileInfo, _ bool) error {
		owner, _ := info.Sys().(*syscall.Stat_t)
		roots := strings.HasPrefix(name, "/nix/store/") || owner != nil && owner.Uid == 0
		if info.Mode()&fs.ModeSymlink != 0 && !roots && !slices.Contains(trusted, path.Dir(name)) {
			return &foreignError{name}
		}
		return nil
	})
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
