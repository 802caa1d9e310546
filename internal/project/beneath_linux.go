package project

import (
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// folder is an open folder below which an agent may have written. Every path
// given to its methods is relative; openat2 refuses each that leaves the
// folder or goes through a symbolic link.
type folder struct {
	path string // canonical, for messages and mounts
	fd   int
}

// openFolder opens a canonical path without following any link.
func openFolder(path string) (*folder, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return &folder{path: path, fd: fd}, nil
}

func (f *folder) close() { unix.Close(f.fd) }

// join gives the absolute path of what lies at rel.
func (f *folder) join(rel string) string {
	return strings.TrimSuffix(f.path, "/") + "/" + rel
}

func (f *folder) open(rel string, flags uint64) (int, error) {
	return unix.Openat2(f.fd, rel, &unix.OpenHow{
		Flags:   flags | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// kind is what lies at a path.
type kind int

const (
	absent  kind = iota
	regular      // a file
	dir          // a folder
	link         // a symbolic link, or something behind one
	special      // a socket, pipe or device
)

// place is what lies at a path, as far as rules ask.
type place struct {
	kind  kind
	names uint64 // hard links
	owner uint32
	dev   uint64
	size  int64
}

// look says what lies at rel. A path that leads through a link counts as a
// link: nothing behind it is looked at.
func (f *folder) look(rel string) (place, error) {
	fd, err := f.open(rel, unix.O_PATH)
	switch {
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR):
		return place{}, nil
	case errors.Is(err, unix.ELOOP):
		return place{kind: link}, nil
	case err != nil:
		return place{}, &os.PathError{Op: "look at", Path: f.join(rel), Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return place{}, &os.PathError{Op: "look at", Path: f.join(rel), Err: err}
	}
	return place{kind: kindOf(st.Mode), names: uint64(st.Nlink), owner: st.Uid, dev: uint64(st.Dev), size: st.Size}, nil
}

func kindOf(mode uint32) kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return regular
	case unix.S_IFDIR:
		return dir
	case unix.S_IFLNK:
		return link
	}
	return special
}

// errTooLarge and errNotRegular are what read refuses.
var (
	errTooLarge   = errors.New("too large to be what it claims")
	errNotRegular = errors.New("not a regular file")
)

// read gives a file of at most limit bytes. It neither follows links nor
// waits for the other end of a pipe.
func (f *folder) read(rel string, limit int64) ([]byte, error) {
	file, err := f.file(rel)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = &os.PathError{Op: "read", Path: f.join(rel), Err: errTooLarge}
	}
	return content, err
}

// file opens a regular file for reading.
func (f *folder) file(rel string) (*os.File, error) {
	fd, err := f.open(rel, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: f.join(rel), Err: err}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || kindOf(st.Mode) != regular {
		unix.Close(fd)
		return nil, &os.PathError{Op: "open", Path: f.join(rel), Err: errNotRegular}
	}
	return os.NewFile(uintptr(fd), f.join(rel)), nil
}

// names lists a folder, at most limit entries; more is an error, because what
// was not seen cannot be protected.
func (f *folder) names(rel string, limit int) ([]string, error) {
	fd, err := f.open(rel, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, &os.PathError{Op: "list", Path: f.join(rel), Err: err}
	}
	d := os.NewFile(uintptr(fd), f.join(rel))
	defer d.Close()
	names, err := d.Readdirnames(limit + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err == nil && len(names) > limit {
		err = &os.PathError{Op: "list", Path: f.join(rel), Err: errTooLarge}
	}
	return names, err
}

// target reads the text of the link at rel.
func (f *folder) target(rel string) (string, error) {
	fd, err := f.open(rel, unix.O_PATH)
	if err != nil {
		return "", &os.PathError{Op: "read link", Path: f.join(rel), Err: err}
	}
	defer unix.Close(fd)
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", text)
	if err != nil {
		return "", &os.PathError{Op: "read link", Path: f.join(rel), Err: err}
	}
	return string(text[:n]), nil
}
