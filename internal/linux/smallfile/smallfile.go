// Package smallfile reads whole files that may not be what they should be: a pipe that nobody writes to, a device, a
// file without end.
package smallfile

import (
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Reasons why a file is not read.
var (
	ErrNotRegular = errors.New("not a regular file")
	ErrTooLarge   = errors.New("file too large")
)

// Flags are those of open(2) to open a file without waiting for the other end of a pipe, and without making a
// terminal the controlling one of this process.
const Flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC

// Read reads a regular file of at most limit bytes; links are followed. Its errors are [os.PathError]s.
func Read(name string, limit int64) ([]byte, error) {
	fd, err := unix.Open(name, Flags, 0)
	for errors.Is(err, unix.EINTR) {
		fd, err = unix.Open(name, Flags, 0)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	content, err := ReadFD(fd, limit)
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: name, Err: err}
	}
	return content, nil
}

// ReadFD reads an open regular file from its beginning. If the file is larger than limit, in bytes, it returns the
// first limit bytes and [ErrTooLarge]. The descriptor stays open, with its offset unchanged. It does without
// [os.File], which prepares for polling and takes some five times as long.
func ReadFD(fd int, limit int64) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, ErrNotRegular
	}
	room := min(st.Size, limit) + 1 // a read that does not fill it came to the end
	if st.Size == 0 {
		room = 512 // files of /proc say 0, and are read until nothing more comes
	}
	content := make([]byte, 0, room)
	for {
		content = slices.Grow(content, 1)
		n, err := unix.Pread(fd, content[len(content):cap(content)], int64(len(content)))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, err
		case n == 0:
			return content, nil
		}
		content = content[:len(content)+n]
		switch size := int64(len(content)); {
		case size > limit:
			return content[:limit], ErrTooLarge
		case size == st.Size:
			return content, nil
		}
	}
}
