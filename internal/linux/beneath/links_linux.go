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

// Canonical resolves every link of a path, as [filepath.EvalSymlinks] does, with errors like its own. For a path
// without links, as most are, it takes one system call, also if nothing is there.
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

// direct looks up a path and follows no link. It returns nil if something is there and no link is on the way, ENOENT
// if a component is missing before any link, and ELOOP if there is a link before that.
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

// Leads returns where an absolute path leads when every link on its way is followed, even if nothing is there: a link
// that dangles leads to what somebody could still make. It fails for links in a circle.
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

// OnDisk is the file system of this machine, for [Follow].
type OnDisk struct{}

// Lstat is [os.Lstat].
func (OnDisk) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }

// Readlink is [os.Readlink].
func (OnDisk) Readlink(name string) (string, error) { return os.Readlink(name) }

// Follow returns where a path leads from the folder at, whose own path is free of links. It looks at each component,
// and calls met with what is there before it goes on; last reports that no component is left, though a link may still
// lead on. It returns an error of met. If met is nil, a component that is missing is taken as one that is no link.
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

// OfRoot reports whether only root or Nix can have made what lies at a path, so that
// no agent has.
func OfRoot(name string, info fs.FileInfo) bool {
	owner, _ := info.Sys().(*syscall.Stat_t)
	return pathname.Below(name, "/nix/store") || owner != nil && owner.Uid == 0
}

func components(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return r == '/' })
}
