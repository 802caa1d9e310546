package session

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// readGitFile reads a file of the user's git configuration, which may include
// one of the project: it neither waits for a pipe nor reads without end.
func readGitFile(name string) ([]byte, error) {
	const limit = 1 << 20
	file, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case name == os.DevNull: // GIT_CONFIG_GLOBAL=/dev/null is a habit
		return nil, nil
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	case info.Size() > limit:
		return nil, errors.New("it has more than a mebibyte")
	}
	return io.ReadAll(io.LimitReader(file, limit))
}
