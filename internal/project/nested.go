package project

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"

	"claudebox/internal/beneath"
	"claudebox/internal/gitconfig"
)

const (
	// repoLimit is how many nested git folders (submodules, other worktrees)
	// are protected; each costs about five mounts.
	repoLimit = 20
	// nameLimit is how many entries a folder of git folders may have.
	nameLimit = 10_000
)

// worktreePlaces tell the host's git in a linked worktree where it belongs.
var worktreePlaces = []string{"gitdir", "commondir"}

func (g *gitGuard) worktrees(rel string) error {
	names, err := g.list(path.Join(rel, "worktrees"))
	if err != nil {
		return err
	}
	for _, name := range names {
		at := path.Join(rel, "worktrees", name)
		if !g.counts(at) {
			continue
		}
		for _, file := range worktreePlaces {
			if err := g.existing(path.Join(at, file), whyMoved); err != nil {
				return err
			}
		}
		if _, err := g.config(path.Join(at, "config.worktree")); err != nil {
			return err
		}
		if err := g.running(at); err != nil {
			return err
		}
		if err := g.modules(at); err != nil {
			return err
		}
	}
	return nil
}

// modules protects the git folders of submodules. A submodule's name may hold
// slashes, so a folder without HEAD is looked into.
func (g *gitGuard) modules(rel string) error {
	return g.modulesIn(path.Join(rel, "modules"))
}

func (g *gitGuard) modulesIn(rel string) error {
	names, err := g.list(rel)
	if err != nil {
		return err
	}
	for _, name := range names {
		at := path.Join(rel, name)
		head, err := g.at.Look(path.Join(at, "HEAD"))
		if err != nil {
			return g.failed(at, err)
		}
		switch {
		case !g.counts(at):
		case head.Kind == beneath.Absent:
			g.pin(at, whyConfig)
			err = g.modulesIn(at)
		default:
			err = g.folder(at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// counts tells whether the folder at rel is to be protected: it is one, and
// the limit is not reached.
func (g *gitGuard) counts(rel string) bool {
	what, err := g.at.Look(rel)
	if err != nil || what.Kind != beneath.Dir {
		return false
	}
	g.repos++
	if g.repos > repoLimit {
		g.o.note(true, fmt.Sprintf("%s is not protected: more than %d git folders", g.at.Join(rel), repoLimit))
		return false
	}
	return true
}

// list names the entries of a folder in order; none when it is not there.
func (g *gitGuard) list(rel string) ([]string, error) {
	what, err := g.at.Look(rel)
	if err != nil {
		return nil, g.failed(rel, err)
	}
	switch what.Kind {
	case beneath.Absent:
		return nil, nil
	case beneath.Dir:
	default:
		return nil, unprotectable(g.at.Join(rel), "it is no folder")
	}
	names, err := g.at.Names(rel, nameLimit)
	if err != nil {
		return nil, g.failed(rel, err)
	}
	slices.Sort(names)
	return names, nil
}

// checkout protects the .git file in the working tree of a submodule, whose
// place its configuration tells.
func (g *gitGuard) checkout(rel string, entries []gitconfig.Entry) error {
	tree := gitconfig.Last(entries, "core.worktree")
	if g.repos == 0 || tree == "" {
		return nil
	}
	if !filepath.IsAbs(tree) {
		tree = g.at.Join(rel) + "/" + tree
	}
	if tree = path.Clean(tree); !g.o.contains(tree) || tree == g.o.Path {
		return nil
	}
	return guard{g.o, g.o.tree}.existing(relative(g.o.Path, tree)+"/.git", whyMoved)
}
