package state

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"claudebox/internal/linux/beneath"
)

// errForeign is returned for a link that somebody else may have made, on the way to a file of the user's. ~/.claude
// may lead into a folder of dotfiles that was a project once: an agent there could have made a link to any secret.
var errForeign = errors.New("is a link that an agent could have made")

// own resolves all links of a path of the user's, if no agent can have made them. It follows links that lie directly
// in the user's home folder, in ~/.claude or in CLAUDEBOX_HOME, and those of root or Nix. It fails with [errForeign]
// for any other link, and with the errors of lstat(2).
func (r Request) own(name string) (string, error) {
	at, rest := "/", name
	if below, ok := strings.CutPrefix(name, r.UserHome+"/"); ok {
		at, rest = r.realUserHome, below
	} else if below, ok := strings.CutPrefix(name, r.Home+"/"); ok {
		at, rest = r.Home, below
	}
	trusted := []string{r.realUserHome, r.realUserHome + "/.claude", r.Home}
	for _, folder := range []string{r.Config, r.Theirs} {
		if folder != "" {
			trusted = append(trusted, strings.Replace(folder, r.UserHome, r.realUserHome, 1))
		}
	}
	return beneath.Follow(beneath.OnDisk{}, at, rest, func(name string, info fs.FileInfo, _ bool) error {
		isLink := info.Mode()&fs.ModeSymlink != 0
		if isLink && !beneath.OfRoot(name, info) && !slices.Contains(trusted, path.Dir(name)) {
			return fmt.Errorf("%s %w", name, errForeign)
		}
		return nil
	})
}

// find is [Request.own] for a file that may be missing, or be reached by a link of somebody else's. In both cases
// real is empty and err is nil; for a link, why says "NAME does not enter: …". The caller says what NAME is.
func (r Request) find(name string) (real, why string, err error) {
	real, err = r.own(name)
	switch {
	case errors.Is(err, errForeign):
		why = name + " does not enter: " + err.Error()
		folder := r.UserHome + "/.claude"
		if path.Dir(name) == folder && beneath.Real(folder) != r.realUserHome+"/.claude" {
			why += "; where ~/.claude is a folder, and no link, links in it are followed"
		}
		return "", why, nil
	case missing(err):
		return "", "", nil
	}
	return real, "", err
}

// readOwn reads a file of the user's. content is nil if [Request.find] finds none; why is that of find. The user's own
// links are followed, because home-manager makes them.
func (r Request) readOwn(name string) (content []byte, why string, err error) {
	real, why, err := r.find(name)
	if err != nil || real == "" {
		return nil, why, err
	}
	content, err = beneath.ReadIn(path.Dir(real), path.Base(real), fileLimit)
	return content, "", err
}

// missing reports whether err says that a file is not there, unlike one that cannot be read.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// ownOrNew is [Request.own] for a path whose last components may not be there yet.
func (r Request) ownOrNew(name string) (string, error) {
	if name == r.UserHome {
		return r.realUserHome, nil
	}
	real, err := r.own(name)
	if err == nil || !missing(err) {
		return real, err
	}
	above, err := r.ownOrNew(path.Dir(name))
	return path.Join(above, path.Base(name)), err
}
