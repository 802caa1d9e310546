package beneath

import (
	"errors"
	"os"
	"path/filepath"

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
