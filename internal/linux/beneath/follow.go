package beneath

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

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
// last: it is the path's last for now. An error of met's ends the way.
func Follow(names Names, at, path string, met func(name string, info fs.FileInfo, last bool) error) (string, error) {
	const mostLinks = 40 // as the kernel allows (MAXSYMLINKS)
	rest, links := components(path), 0
	for len(rest) > 0 {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		info, err := names.Lstat(next)
		if err != nil {
			return "", err
		}
		if err := met(next, info, len(rest) == 0); err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
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
