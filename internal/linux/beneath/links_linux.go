package beneath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Canonical resolves every link of a path, as [filepath.EvalSymlinks] does,
// with errors like its own. A path without links, as most are, costs one look: the
// kernel answers for all of it at once, also that it leads nowhere.
func Canonical(path string) (string, error) {
	err := direct(path)
	switch {
	case err == nil:
		return filepath.Clean(path), nil
	case errors.Is(err, unix.ENOENT) && path != "":
		return "", &os.PathError{Op: "look at", Path: path, Err: err}
	}
	return filepath.EvalSymlinks(path)
}

// direct looks at a path that no link may be part of: its error is ENOENT when
// it ends without one, and ELOOP when there is a link before that.
func direct(path string) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// Leads is where an absolute path leads when every link on its way is
// followed, also where nothing is there: a link that dangles leads to what
// somebody could still make. It fails for links in a circle.
func Leads(path string) (string, error) {
	err := direct(path)
	if err == nil || errors.Is(err, unix.ENOENT) && path == filepath.Clean(path) {
		return filepath.Clean(path), nil // the kernel met no link, as far as there is anything
	}
	if real, err := Canonical(path); err == nil {
		return real, nil
	} else if !errors.Is(err, unix.ENOENT) {
		return "", err
	}
	return Follow(OnDisk{}, "/", filepath.Clean(path), nil)
}

// Names is the part of a file system that [Follow] needs.
type Names interface {
	Lstat(name string) (fs.FileInfo, error)
	Readlink(name string) (string, error)
}

// OnDisk are the names of this machine.
type OnDisk struct{}

// Lstat is [os.Lstat].
func (OnDisk) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }

// Readlink is [os.Readlink].
func (OnDisk) Readlink(name string) (string, error) { return os.Readlink(name) }

// Follow is where a path leads that begins at a folder free of links: each
// component is looked at by its own name, and shown to met before it counts;
// last: it is the path's last for now. An error of met's ends the way. Without
// met what is not there is taken for no link.
func Follow(names Names, at, path string, met func(name string, info fs.FileInfo, last bool) error) (string, error) {
	const mostLinks = 40 // as the kernel allows (MAXSYMLINKS)
	rest, links := components(path), 0
	for len(rest) > 0 {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		info, err := names.Lstat(next)
		if err == nil && met != nil {
			err = met(next, info, len(rest) == 0)
		}
		if err != nil && met != nil {
			return "", err
		}
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		if links++; links > mostLinks {
			return "", &fs.PathError{Op: "follow", Path: next, Err: unix.ELOOP}
		}
		text, err := names.Readlink(next)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(text) {
			at = "/"
		}
		rest = append(components(text), rest...)
	}
	return at, nil
}

func components(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return r == '/' })
}
