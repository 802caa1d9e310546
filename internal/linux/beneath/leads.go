package beneath

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Leads is where an absolute path leads when every link on its way is
// followed, also where nothing is there: a link that dangles leads to what
// somebody could still make. It fails for links in a circle.
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
	const mostLinks = 40 // as the kernel allows
	at, rest, links := "/", strings.Split(filepath.Clean(path), "/"), 0
	for len(rest) > 0 {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		text, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		if links++; links > mostLinks {
			return "", &os.PathError{Op: "follow", Path: path, Err: unix.ELOOP}
		}
		if filepath.IsAbs(text) {
			at = "/"
		}
		rest = append(strings.Split(text, "/"), rest...)
	}
	return at, nil
}
