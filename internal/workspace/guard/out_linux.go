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
	"claudebox/internal/workspace/survey"
)

// BringOut puts what a session held back where its links are, below root. It returns what came out. What has no link
// any more was removed, or somebody has put the link away: it is kept beside the session's own folder, which is held,
// until a later session has something to keep.
func BringOut(root *beneath.Folder, held string) (out []string, err error) {
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
	var missing []string
	for _, id := range ids {
		rel, fault := bringOut(root, made, id)
		switch {
		case errors.Is(fault, errNothing), errors.Is(fault, errRemoved) && !holds(made, id):
			dropAside(root, made, id)
			_ = os.RemoveAll(made.Join(id))
		case errors.Is(fault, errRemoved):
			missing = append(missing, id)
		case fault != nil:
			faults = append(faults, fault)
		default:
			out = append(out, rel)
		}
	}
	if len(missing) > 0 {
		out = append(out, searchFor(root, made, missing)...)
	}
	if len(faults) == 0 {
		putAway(held)
	}
	return out, errors.Join(faults...)
}

// dropAside removes the link that was put aside for a repository that has become the user's.
func dropAside(root, made *beneath.Folder, id string) {
	const limit = 1 << 20
	where, err := made.Read(id+"/"+whereFile, limit)
	aside := path.Join(path.Dir(string(where)), linkAside)
	if text, none := root.Readlink(aside); err == nil && none == nil {
		if of, _, is := placeOf(made, text); is && of == id {
			_ = root.Remove(aside) // else it leads nowhere
		}
	}
}

// isEmpty reports whether a repository has no objects and no branches.
func isEmpty(root *beneath.Folder, git string) bool {
	empty := true
	for _, dir := range []string{"objects", "refs"} {
		seen := survey.Walk(root, survey.Question{
			From: []string{path.Join(git, dir)}, Wanted: survey.Everything, Limit: mostLinks,
		}, nil)
		for _, f := range seen.Files {
			empty = empty && f.Kind == beneath.Dir
		}
	}
	_, err := root.Look(git + "/packed-refs")
	return empty && err == nil
}

// holds reports whether there is a thing in a place, and not the link that was to be exchanged with it.
func holds(made *beneath.Folder, id string) bool {
	at := id
	for {
		if what, err := made.Look(at + "/x"); err != nil || what.Kind != beneath.Dir {
			break
		}
		at += "/x"
	}
	what, err := made.Look(path.Join(at, thing))
	return err != nil || what.Kind != beneath.Absent && !IsLink(made, path.Join(at, thing))
}

// putAway removes a session's own folder, or keeps what is left in it, in the place of what was kept before.
func putAway(held string) {
	if os.Remove(held) == nil {
		return
	}
	kept := path.Join(path.Dir(held), "kept")
	_ = os.RemoveAll(kept)
	_ = os.Rename(held, kept) // or it stays as it is
}

// mostLinks is how many entries of a folder are looked at for links that were moved.
const mostLinks = 2_000_000

// searchFor brings out what has its link elsewhere than was noted, as after a folder was closed, or claudebox killed.
func searchFor(root, made *beneath.Folder, missing []string) (out []string) {
	var links []string
	survey.OpenUntil(root, func() []string {
		seen := survey.Walk(root, survey.Question{Limit: mostLinks, LinksSince: 1}, nil)
		links = append(seen.NewLinks, seen.Git...)
		return seen.Closed
	})
	for _, rel := range links {
		text, err := root.Readlink(rel)
		if err != nil {
			continue
		}
		id, _, is := placeOf(made, text)
		if !is || !slices.Contains(missing, id) {
			continue
		}
		if made.Rewrite(id+"/"+whereFile, []byte(rel), 0o600) != nil {
			continue
		}
		if rel, err := bringOut(root, made, id); err == nil {
			out = append(out, rel)
		}
	}
	return out
}

// placeOf returns the place that a link leads to, and the rest of the way there, if that is one of a session's.
func placeOf(made *beneath.Folder, text string) (id, below string, is bool) {
	rest, is := strings.CutPrefix(text, inside)
	_, rest, in := strings.Cut(rest, "/"+path.Base(made.Path())+"/")
	id, below, deep := strings.Cut(rest, "/")
	return id, below, is && in && deep
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
	aside := path.Join(path.Dir(r.Rel), linkAside)
	back = func() error { return root.Rename(aside, r.Rel) }
	drop = func() error { return root.Remove(aside) }
	return back, drop, root.Rename(r.Rel, aside)
}

// linkAside is the name of a link while its repository becomes one of the user's.
const linkAside = ".claudebox-link"

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

// errNothing is the error for a place in which there is nothing that could come out.
var errNothing = errors.New("there is nothing in it")

// find looks for a thing where its link is to be.
func find(root, made *beneath.Folder, id string) (f found, err error) {
	const limit = 1 << 20
	where, err := made.Read(id+"/"+whereFile, limit)
	if err != nil {
		return f, errNothing // it was being made, or the agent made it
	}
	f.rel = string(where)
	if path.Base(f.rel) == linkAside { // of a repository, in the middle of an end
		git := path.Join(path.Dir(f.rel), ".git")
		if holds(made, id) && isEmpty(root, git) { // of the user's, and was just begun
			_ = os.RemoveAll(root.Join(git))
		}
		if root.Rename(f.rel, git) == nil {
			f.rel = git
		}
	}
	if f.parent, err = root.Sub(path.Dir(f.rel)); err != nil {
		return f, errRemoved
	}
	text, err := f.parent.Readlink(path.Base(f.rel))
	of, deep, is := placeOf(made, text)
	if err != nil || !is || of != id {
		f.parent.Close()
		return f, errRemoved
	}
	// It lies as deep as it lay when it was made, wherever its link is now.
	if f.place, err = made.Sub(path.Join(id, path.Dir(deep))); err != nil {
		f.parent.Close()
		return f, fmt.Errorf("%s: its place is not as it was made: %w", diag.Name(f.rel), err)
	}
	return f, nil
}

// bringOut puts one thing back, if its link is where it was.
func bringOut(root, made *beneath.Folder, id string) (rel string, err error) {
	f, err := find(root, made, id)
	if err != nil {
		return "", err
	}
	defer f.close()
	err = unix.Renameat2(f.place.FD(), thing, f.parent.FD(), path.Base(f.rel), unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.ENOENT) { // the agent has removed the thing, and not the link
		return "", errors.Join(f.parent.Remove(path.Base(f.rel)), errNothing)
	}
	if err != nil {
		return "", err
	}
	_ = os.RemoveAll(made.Join(id)) // what the agent has closed there stays in the instance
	return f.rel, nil
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
