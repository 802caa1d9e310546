package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
)

// BringOut puts what a session held back where it was, below root, and removes the session's own folder, at held, if
// nothing is left in it. It returns what came out. What the agent has removed meanwhile is dropped.
func BringOut(root *beneath.Folder, held string) (out []string, err error) {
	made, err := beneath.Open(held)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer made.Close()
	const most = 1 << 20
	ids, err := made.Names(".", most)
	if err != nil {
		return nil, err
	}
	var faults []error
	for _, id := range ids {
		rel, fault := bringOut(root, made, id)
		if fault != nil {
			faults = append(faults, fault)
		} else if rel != "" {
			out = append(out, rel)
		}
	}
	if len(faults) == 0 {
		_ = os.Remove(held) // else it is looked at again
	}
	return out, errors.Join(faults...)
}

// bringOut puts one thing back, if its link is where it was.
func bringOut(root, made *beneath.Folder, id string) (rel string, err error) {
	const limit = 1 << 20
	where, err := made.Read(id+"/"+whereFile, limit)
	if err != nil {
		return "", os.RemoveAll(made.Join(id)) // it was being made
	}
	rel = string(where)
	place, err := made.Sub(path.Join(id, below(strings.Count(rel, "/"))))
	if err != nil {
		return "", fmt.Errorf("%s: its place is not as it was made: %w", diag.Name(rel), err)
	}
	defer place.Close()
	parent, err := root.Sub(path.Dir(rel))
	if err == nil {
		defer parent.Close()
		var text string
		text, err = parent.Readlink(path.Base(rel))
		ours := strings.Contains(text, "/"+path.Base(made.Path())+"/"+id+"/") && strings.HasPrefix(text, inside)
		if err == nil && !ours {
			err = unix.ENOENT
		}
	}
	if err == nil {
		err = unix.Renameat2(place.FD(), thing, parent.FD(), path.Base(rel), unix.RENAME_EXCHANGE)
	}
	switch gone := errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ELOOP); {
	case err == nil:
	case gone:
		rel = ""
	default:
		return "", err
	}
	return rel, os.RemoveAll(made.Join(id))
}
