package beneath

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Canonical resolves every link of a path, as [filepath.EvalSymlinks] does,
// with its errors. A path without links, as most are, costs one look.
func Canonical(path string) (string, error) {
	if !withoutLinks(path) {
		return filepath.EvalSymlinks(path)
	}
	return filepath.Clean(path), nil
}

// withoutLinks tells a path that exists and leads through no link; the kernel
// answers for all of it at once.
func withoutLinks(path string) bool {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}
