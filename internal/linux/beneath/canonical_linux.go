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
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	switch {
	case err == nil:
		unix.Close(fd)
		return filepath.Clean(path), nil
	case errors.Is(err, unix.ENOENT) && path != "":
		return "", &os.PathError{Op: "look at", Path: path, Err: err}
	}
	return filepath.EvalSymlinks(path)
}
