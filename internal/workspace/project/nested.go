package project

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/placeholder"
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
		if err := g.worktree(path.Join(rel, "worktrees", name)); err != nil {
			return err
		}
	}
	return nil
}

func (g *gitGuard) worktree(rel string) error {
	if ok, err := g.counts(rel); err != nil || !ok {
		return err
	}
	for _, file := range worktreePlaces {
		if err := g.existing(path.Join(rel, file), whyMoved); err != nil {
			return err
		}
	}
	g.lock(path.Join(rel, "locked"))
	if err := g.index(rel); err != nil {
		return err
	}
	if _, err := g.config(path.Join(rel, "config.worktree"), g.perWorktree); err != nil {
		return err
	}
	for _, step := range []func(string) error{g.copies, g.running, g.modules} {
		if err := step(rel); err != nil {
			return err
		}
	}
	return nil
}

// lockReason is what git says of a worktree that it is told to remove: its
// files are protected, so it would stop half-way.
const lockReason = "claudebox protects what was there before this session; remove it outside the sandbox"

// lock locks a worktree as `git worktree lock` does, unless the user has.
func (g *gitGuard) lock(rel string) {
	content, err := g.at.Read(rel, smallLimit)
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(content) == lockReason {
		g.placeholder(placeholder.Placeholder{Rel: rel, Content: lockReason}, whyMoved)
	}
}

// index protects what is tracked in a checkout that nobody sees inside: what is
// tracked is not hidden there.
func (g *gitGuard) index(rel string) error {
	if at := path.Join(g.at.Path(), rel); at == g.o.Repo.Dir || g.o.given(g.checkoutOf(rel, at)) {
		return nil
	}
	return g.existing(path.Join(rel, "index"), "it says what is tracked in another checkout")
}

// checkoutOf is the working tree of a git folder, as its files tell.
func (g *gitGuard) checkoutOf(rel, at string) string {
	tree := ""
	if back, err := g.at.Read(path.Join(rel, "gitdir"), smallLimit); err == nil {
		tree = path.Dir(strings.TrimRight(string(back), "\n"))
	} else if config, err := g.at.Read(path.Join(rel, "config"), configLimit); err == nil {
		entries, _ := gitconfig.Parse(config)
		tree = gitconfig.Last(entries, "core.worktree")
	}
	switch {
	case tree == "":
		return path.Dir(at)
	case !path.IsAbs(tree):
		tree = at + "/" + tree
	}
	return path.Clean(tree)
}

// modules protects the git folders of submodules.
func (g *gitGuard) modules(rel string) error {
	return g.modulesIn(path.Join(rel, "modules"))
}

// modulesIn goes through a folder of git folders. A submodule's name may hold
// slashes, so one that is none is looked into.
func (g *gitGuard) modulesIn(rel string) error {
	names, err := g.list(rel)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := g.module(path.Join(rel, name)); err != nil {
			return err
		}
	}
	return nil
}

func (g *gitGuard) module(rel string) error {
	if ok, err := g.counts(rel); err != nil || !ok {
		return err
	}
	for _, sign := range gitFolderSigns {
		if what, err := g.at.Look(path.Join(rel, sign)); err != nil || what.Kind != beneath.Absent {
			return g.folder(rel)
		}
	}
	g.pin(rel, whyConfig)
	return g.modulesIn(rel)
}

// gitFolderSigns tell a git folder from a part of a name. One is enough: the
// agent may have removed the others, to put them back later.
var gitFolderSigns = []string{"HEAD", "config", "objects", "refs", "hooks"}

// counts reports whether the folder at rel is to be protected: it is one, and
// the limit is not reached. A link cannot be.
func (g *gitGuard) counts(rel string) (bool, error) {
	what, err := g.at.Look(rel)
	switch {
	case err != nil:
		return false, g.failed(rel, err)
	case what.Kind == beneath.Link:
		return false, unprotectable(g.at.Join(rel), "it is a link: the agent could replace it")
	case what.Kind != beneath.Dir:
		return false, nil
	}
	g.repos++
	if g.repos > repoLimit {
		g.o.note(true, fmt.Sprintf("%s is not protected: more than %d git folders", g.at.Join(rel), repoLimit))
		return false, g.secrets(rel)
	}
	return true, nil
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
