package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path/filepath"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/profile"
)

// File is a project's own profile as it was read once: what is judged, shown
// and allowed are these bytes.
type File struct {
	Path   string // canonical
	Source []byte
}

// SHA256 is of the content, in hex.
func (f File) SHA256() string {
	sum := sha256.Sum256(f.Source)
	return hex.EncodeToString(sum[:])
}

// Read reads the profile at the root of a project; nil when there is none,
// which costs one system call. The file may be anything an agent can make: a
// link, a pipe or a folder of that name, or more than [profile.MaxSize] bytes,
// is refused.
func Read(root string) (*File, error) {
	content, err := beneath.ReadIn(root, profile.ProjectFile, profile.MaxSize)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	real, wayErr := filepath.EvalSymlinks(root)
	if wayErr == nil {
		real, wayErr = filepath.Abs(real)
	}
	file := filepath.Join(real, profile.ProjectFile)
	switch {
	case errors.Is(err, unix.ELOOP):
		err = errors.New("it is a link, which may lead anywhere")
	case errors.Is(err, unix.ENXIO): // a socket, or a device without a driver
		err = beneath.ErrNotRegular
	case errors.Is(err, beneath.ErrTooLarge):
		err = errors.New("it is larger than 1 MiB")
	}
	if err = errors.Join(err, wayErr); err != nil {
		return nil, diag.Wrap("read "+file, err, "look at it, and remove it or put a file in its place")
	}
	return &File{Path: file, Source: content}, nil
}
