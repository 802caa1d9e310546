package project

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"claudebox/internal/beneath"
)

const (
	// walkLimit is how many folders of a project are looked into for
	// repositories of their own: some fifteen milliseconds.
	walkLimit = 800
	// walkEntries is how many entries of one folder are looked at.
	walkEntries = 10_000
)

// unwalked are folders that tools fill; repositories in them are not the
// user's.
var unwalked = []string{"node_modules", "target", ".direnv", ".git"}

// nested protects the repositories below the project's own: clones, and the
// working trees of submodules and worktrees. A folder of repositories is a
// project too, and the host's git runs what their configuration names.
func (o *opener) nested() error {
	found, whole := o.gitPlaces()
	g := gitGuard{guard: guard{o, o.tree}}
	for _, rel := range found {
		if err := g.nestedRepo(rel); err != nil {
			return err
		}
	}
	if !whole {
		// Not in red: every large project has them.
		o.note(false, "not all folders of the project were looked into for further repositories: those are not protected")
	}
	return nil
}

// nestedRepo protects one .git.
func (g *gitGuard) nestedRepo(rel string) error {
	what, err := g.at.Look(rel)
	if err != nil || what.Kind != beneath.Dir {
		return g.existing(rel, whyMoved)
	}
	if ok, err := g.counts(rel); err != nil || !ok {
		return err
	}
	g.worktreeRoot = g.at.Join(path.Dir(rel))
	return g.folder(rel)
}

// gitPlaces lists every .git below the project but that of its root, which
// has been dealt with, and tells whether all of the project was looked at. The
// walk goes by breadth: what is near the root is seen first. No link is
// followed.
func (o *opener) gitPlaces() (found []string, whole bool) {
	folders, whole := []string{"."}, true
	for n := 0; n < len(folders); n++ {
		if n == walkLimit {
			return found, false
		}
		entries, all := o.entries(folders[n])
		whole = whole && all
		for _, e := range entries {
			rel := path.Join(folders[n], e.Name())
			switch {
			case e.Name() == ".git" && rel != ".git":
				found = append(found, rel)
			case e.IsDir() && !slices.Contains(unwalked, e.Name()):
				folders = append(folders, rel)
			}
		}
	}
	return found, whole
}

// entries lists a folder by name, and tells whether that is all. Of a folder
// that cannot be read it is, if it is somebody else's: the agent cannot make
// it readable.
func (o *opener) entries(rel string) (list []fs.DirEntry, all bool) {
	dir, err := o.tree.OpenDir(rel)
	if err != nil {
		what, err := o.tree.Look(rel)
		return nil, err == nil && what.UID != uint32(o.UID)
	}
	defer dir.Close()
	list, _ = dir.ReadDir(walkEntries)
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, len(list) < walkEntries
}
