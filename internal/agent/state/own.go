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
	at, rest := "/", name
	if below, is := strings.CutPrefix(name, r.UserHome+"/"); is {
		at, rest = r.homes.user, below
	} else if below, is := strings.CutPrefix(name, r.Home+"/"); is {
		at, rest = r.homes.state, below
	}
	trusted := []string{r.homes.user, r.homes.user + "/.claude", r.homes.state}
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

// canonical resolves the way to a folder that is the user's own.
func canonical(name string) string {
	if real, err := beneath.Canonical(name); err == nil {
		return real
	}
	return name
}

// find is [Request.own] for what need not be there, or need not be the user's:
// real is empty then, and why says which link is not.
func (r Request) find(name string) (real, why string, err error) {
	real, err = r.own(name)
	var foreign *foreignError
	switch {
	case errors.As(err, &foreign):
		return "", name + " does not enter: " + foreign.Error(), nil
	case missing(err):
		return "", "", nil
	}
	return real, "", err
}

// readOwn reads a file of the user: nil when there is none, or when the way to
// it is not theirs; then why says so. Links are followed, for home-manager makes
// them, as far as they are the user's.
func (r Request) readOwn(name string) (content []byte, why string, err error) {
	real, why, err := r.find(name)
	if err != nil || real == "" {
		return nil, why, err
	}
	content, err = beneath.ReadIn(filepath.Dir(real), filepath.Base(real), fileLimit)
	return slices.Clip(content), "", err
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
