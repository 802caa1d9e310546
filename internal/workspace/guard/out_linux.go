package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
)

// BringOut puts what a session held back where it was, below root, and removes the session's own folder, at held, if
// nothing is left in it. It returns what came out. What has no link any more the agent has removed, and it is dropped
// if the session ended by itself; it is kept if claudebox was killed, which may not have seen where it was moved.
func BringOut(root *beneath.Folder, held string, ended bool) (out []string, err error) {
	made, err := beneath.Open(held)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer made.Close()
	ids, err := names(made)
	if err != nil {
		return nil, err
	}
	var faults []error
	for _, id := range ids {
		rel, fault := bringOut(root, made, id, ended)
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

// Repository is a git folder that is held back.
type Repository struct {
	Rel string // where it was made, below the root
	At  string // where it is
}

// Repositories lists the folders called .git that a session holds back, one in another after that one. Nothing may run
// inside any more.
func Repositories(root *beneath.Folder, held string) (list []Repository) {
	made, err := beneath.Open(held)
	if err != nil {
		return nil
	}
	defer made.Close()
	ids, _ := names(made) // what is not listed comes out as it is
	for _, id := range ids {
		h, err := find(root, made, id)
		if err != nil {
			continue
		}
		what, err := h.place.Look(thing)
		if err == nil && what.Kind == beneath.Dir && path.Base(h.rel) == ".git" {
			list = append(list, Repository{h.rel, h.place.Join(thing)})
		}
		h.close()
	}
	slices.SortFunc(list, func(a, b Repository) int { return strings.Compare(a.Rel, b.Rel) })
	return list
}

// Unlink takes the link out of the place of a repository, which is then to be taken from where it is. Neither it nor
// what puts the link back needs room on a disk. drop removes the link for good.
func (r Repository) Unlink(root *beneath.Folder) (back, drop func() error, err error) {
	text, err := root.Readlink(r.Rel)
	if err == nil && !strings.HasPrefix(text, inside) {
		err = unix.ENOENT
	}
	if err != nil {
		return nil, nil, err
	}
	aside := path.Join(path.Dir(r.Rel), ".claudebox-link")
	back = func() error { return root.Rename(aside, r.Rel) }
	drop = func() error { return root.Remove(aside) }
	return back, drop, root.Rename(r.Rel, aside)
}

// found is a thing that is held back, and the folder with its link.
type found struct {
	rel           string
	place, parent *beneath.Folder
}

func (f found) close() {
	f.place.Close()
	f.parent.Close()
}

// errRemoved is the error for what the agent has removed.
var errRemoved = errors.New("the agent has removed it")

// find looks for a thing where its link is to be.
func find(root, made *beneath.Folder, id string) (f found, err error) {
	const limit = 1 << 20
	where, err := made.Read(id+"/"+whereFile, limit)
	if err != nil {
		return f, errRemoved // it was being made
	}
	f.rel = string(where)
	if f.place, err = made.Sub(path.Join(id, below(strings.Count(f.rel, "/")))); err != nil {
		return f, fmt.Errorf("%s: its place is not as it was made: %w", diag.Name(f.rel), err)
	}
	if f.parent, err = root.Sub(path.Dir(f.rel)); err != nil {
		f.place.Close()
		return f, errRemoved
	}
	text, err := f.parent.Readlink(path.Base(f.rel))
	if err != nil || !strings.HasPrefix(text, inside) ||
		!strings.Contains(text, "/"+path.Base(made.Path())+"/"+id+"/") {
		f.close()
		return f, errRemoved
	}
	return f, nil
}

// bringOut puts one thing back, if its link is where it was.
func bringOut(root, made *beneath.Folder, id string, ended bool) (rel string, err error) {
	f, err := find(root, made, id)
	if err == nil {
		rel = f.rel
		err = unix.Renameat2(f.place.FD(), thing, f.parent.FD(), path.Base(rel), unix.RENAME_EXCHANGE)
		f.close()
	}
	switch {
	case (errors.Is(err, errRemoved) || errors.Is(err, unix.ENOENT)) && !ended:
		return "", nil
	case errors.Is(err, errRemoved), errors.Is(err, unix.ENOENT):
		rel = ""
	case err != nil:
		return "", err
	}
	_ = os.RemoveAll(made.Join(id)) // what the agent has closed there stays in the instance
	return rel, nil
}

// names lists a session's own folder. An agent can make any number of names there.
func names(made *beneath.Folder) ([]string, error) {
	dir, err := made.OpenDir(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Readdirnames(-1)
}
