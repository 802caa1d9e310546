package beneath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/pathname"
)

// Canonical resolves every link of a path and returns what [filepath.EvalSymlinks] would, or an error of the same
// kind. For a path without links, as most are, it makes one system call, whether something is there or not.
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

// direct looks up a path without following links. It returns nil if something is there and no component is a link.
// Else the first component that is a link or missing decides: ELOOP for a link, ENOENT for a missing one.
func direct(path string) error {
	fd, err := OpenPath(path)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// OpenPath opens an absolute path for looking only (O_PATH). Its error is the kernel's own: ELOOP if there is a link in
// the path. In a canonical path that link was put there since it was resolved.
func OpenPath(path string) (fd int, err error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
}

// Leads returns where an absolute path leads when every link in it is followed. Unlike [Canonical] it also answers if
// nothing is there: what a dangling link points at could still be made. It fails for links in a circle.
func Leads(path string) (string, error) {
	err := direct(path)
	// No component that exists is a link. (Behind a missing component, ".." could lead to one that exists.)
	if err == nil || errors.Is(err, unix.ENOENT) && path == filepath.Clean(path) {
		return filepath.Clean(path), nil
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real, nil
	} else if !errors.Is(err, unix.ENOENT) {
		return "", err
	}
	return Follow(OnDisk{}, "/", filepath.Clean(path), nil)
}

// LeadsOrClean is [Leads], or only cleans the path if that fails.
func LeadsOrClean(path string) string {
	if real, err := Leads(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// LinkReader is the part of a file system that [Follow] needs.
type LinkReader interface {
	Lstat(name string) (fs.FileInfo, error)
	Readlink(name string) (string, error)
}

// OnDisk is the file system of this machine, for [Follow].
type OnDisk struct{}

// Lstat is [os.Lstat].
func (OnDisk) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }

// Readlink is [os.Readlink].
func (OnDisk) Readlink(name string) (string, error) { return os.Readlink(name) }

// Follow returns where a path leads from the folder at. The path of that folder must have no links. Follow takes one
// component after the other, those of links included, and calls met with the path and the status of each before it
// goes on. last is true if no component is left; if this one is a link, its target is still followed. Follow fails if
// a component is missing, or with the error that met returns. If met is nil, a missing component is no error.
func Follow(files LinkReader, at, path string,
	met func(name string, info fs.FileInfo, last bool) error,
) (string, error) {
	const mostLinks = 40 // as the kernel allows (MAXSYMLINKS)
	rest, links := components(path), 0
	for len(rest) > 0 {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		info, err := files.Lstat(next)
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
		text, err := files.Readlink(next)
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

// OfRoot reports whether root or Nix made the file at the path name, so that no
// agent did.
func OfRoot(name string, info fs.FileInfo) bool {
	owner, _ := info.Sys().(*syscall.Stat_t)
	return pathname.Below(name, "/nix/store") || owner != nil && owner.Uid == 0
}

// components splits a path at its slashes; empty parts are left out.
func components(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return r == '/' })
}

// Real resolves all links of a path; if that fails it returns the path.
func Real(name string) string {
	if real, err := Canonical(name); err == nil {
		return real
	}
	return name
}
