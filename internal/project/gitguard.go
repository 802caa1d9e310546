package project

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/beneath"
	"claudebox/internal/gitconfig"
	"claudebox/internal/placeholder"
)

const (
	// configLimit is what a git configuration may have, in bytes.
	configLimit = 1 << 20
	// repoLimit is how many nested git folders (submodules, other worktrees)
	// are protected; each costs about five mounts.
	repoLimit = 20
	// nameLimit is how many entries a folder of git folders may have.
	nameLimit = 10_000

	whyConfig = "the host's git runs what its configuration names"
	whyHooks  = "the host's git runs hooks"
	whyMoved  = "it says where the host's git finds its configuration"
	whyTodo   = "the host's git runs what it lists"
)

// protectRepo protects the git folders of the project.
func (o *opener) protectRepo() error {
	common, done, err := o.commonGuard()
	if err != nil {
		return err
	}
	defer done()
	g := gitGuard{guard: common, worktreeRoot: o.Repo.Worktree}
	rel := relative(g.at.Path(), o.Repo.Common)
	if err := g.folder(rel); err != nil {
		return err
	}
	o.readHead(g)
	return o.protectDotGit()
}

// commonGuard opens the folder beneath which the repository's git folders
// lie: the project, or the common folder, which is then mounted as well.
func (o *opener) commonGuard() (guard, func(), error) {
	if o.contains(o.Repo.Common) {
		return guard{o, o.tree}, func() {}, nil
	}
	at, err := beneath.Open(o.Repo.Common)
	if err != nil {
		return guard{}, nil, unprotectable(o.Repo.Common, err.Error())
	}
	o.Mounts = append(o.Mounts, Mount{
		Path: o.Repo.Common, Root: o.Repo.Common, Mode: Shared, Dir: true, Why: "git needs it: objects and branches",
	})
	if isBelow(o.Path, o.Repo.Common) {
		o.note(true, fmt.Sprintf("the git folder %s holds the project: all in it can be changed inside", o.Repo.Common))
	}
	return guard{o, at}, at.Close, nil
}

// protectDotGit keeps the .git file of a worktree or submodule from pointing
// elsewhere.
func (o *opener) protectDotGit() error {
	if o.Repo.Dir == o.Repo.Worktree || o.Repo.Dir == o.Repo.Worktree+"/.git" {
		return nil
	}
	base, err := beneath.Open(o.Repo.Worktree)
	if err != nil {
		return unprotectable(o.Repo.Worktree, err.Error())
	}
	defer base.Close()
	return guard{o, base}.existing(".git", whyMoved)
}

// relative gives path below base; "." for base itself.
func relative(base, path string) string {
	rel, err := filepath.Rel(base, path)
	if err != nil {
		return "." // both are absolute: cannot happen
	}
	return rel
}

// gitGuard protects one repository with its worktrees and submodules.
type gitGuard struct {
	guard
	worktreeRoot string
	repos        int // git folders protected so far, beyond the first
}

// folder protects a git folder that has its own configuration: the common
// folder or a submodule's.
func (g *gitGuard) folder(rel string) error {
	g.pin(rel, whyConfig)
	entries, err := g.config(path.Join(rel, "config"))
	if err != nil {
		return err
	}
	if g.repos == 0 {
		g.o.hashSize = hashSize(entries)
	}
	own := path.Join(rel, "config.worktree")
	if _, err := g.config(own); err != nil {
		return err
	}
	if what, err := g.at.Look(own); err == nil && what.Kind == beneath.Absent && worktreeConfig(entries) && !g.o.WritableConfig {
		g.placeholder(placeholder.Placeholder{Rel: own}, whyConfig)
	}
	for _, step := range []func(string) error{g.hooks, g.commondir, g.running, g.worktrees, g.modules} {
		if err := step(rel); err != nil {
			return err
		}
	}
	return g.checkout(rel, entries)
}

func worktreeConfig(entries []gitconfig.Entry) bool {
	for _, e := range entries {
		if e.Key() == "extensions.worktreeconfig" {
			return e.Bare || e.Value != "false"
		}
	}
	return false
}

// config covers a configuration file with a copy that holds no secrets, and
// gives its entries. What the repository's own says about remotes and about
// programs in the project is noted down.
func (g *gitGuard) config(rel string) ([]gitconfig.Entry, error) {
	what, err := g.at.Look(rel)
	if err != nil || what.Kind == beneath.Absent {
		return nil, err
	}
	if what.Kind != beneath.Regular {
		return nil, unprotectable(g.at.Join(rel), "it is no regular file")
	}
	content, err := g.at.Read(rel, configLimit)
	if err != nil {
		return nil, g.failed(rel, err)
	}
	entries, _ := gitconfig.Parse(content) // a broken one is copied as broken
	if !g.o.WritableConfig {
		g.made(rel, what, gitconfig.Sanitise(content), whyConfig)
	}
	g.learn(entries, path.Dir(rel))
	return entries, nil
}

// learn takes down remotes, and files of the project that this configuration
// makes git read or run.
func (g *gitGuard) learn(entries []gitconfig.Entry, dir string) {
	for _, e := range entries {
		switch {
		case e.Section == "remote" && e.Name == "url" && g.repos == 0:
			g.o.Repo.Remotes = append(g.o.Repo.Remotes, e.Value)
		case e.Key() == "core.hookspath":
			g.o.named(g.worktreeRoot, e.Value)
		case e.Name == "path" && (e.Section == "include" || e.Section == "includeif"):
			g.o.named(g.at.Join(dir), e.Value)
		}
	}
}

// named adds a path that git's configuration names to those the host
// executes, when it lies in the project.
func (o *opener) named(from, name string) {
	if !filepath.IsAbs(name) {
		name = from + "/" + name
	}
	if name = path.Clean(name); o.contains(name) && name != o.Path {
		o.alsoExecuted = append(o.alsoExecuted, relative(o.Path, name))
	}
}

// hooks are read-only; where there is no folder an empty one stands in, or
// the agent could make it.
func (g *gitGuard) hooks(rel string) error {
	rel = path.Join(rel, "hooks")
	if what, err := g.at.Look(rel); err == nil && what.Kind == beneath.Absent {
		g.placeholder(placeholder.Placeholder{Rel: rel, Dir: true}, whyHooks)
		return nil
	}
	return g.existing(rel, whyHooks)
}

// samePlace is a commondir that changes nothing: git finds all in the folder
// where it stands.
const samePlace = ".\n"

// commondir must be absent in such a folder. An agent that writes one moves
// the host's git to a configuration of its own, so one that says "here"
// stands in; one left over from a killed session says the same.
func (g *gitGuard) commondir(rel string) error {
	rel = path.Join(rel, "commondir")
	what, err := g.at.Look(rel)
	if err != nil {
		return g.failed(rel, err)
	}
	if what.Kind != beneath.Absent {
		content, err := g.at.Read(rel, gitFileLimit)
		if err != nil || strings.TrimRight(string(content), "\r\n") != "." {
			return unprotectable(g.at.Join(rel), "it makes git take its configuration from elsewhere; remove it")
		}
	}
	g.placeholder(placeholder.Placeholder{Rel: rel, Content: samePlace}, whyMoved)
	return nil
}

// runningPlaces hold commands that git goes on with when it is called again.
var runningPlaces = []string{"rebase-merge/git-rebase-todo", "rebase-apply", "sequencer", "info/attributes"}

func (g *gitGuard) running(rel string) error {
	for _, name := range runningPlaces {
		if err := g.existing(path.Join(rel, name), whyTodo); err != nil {
			return err
		}
	}
	return nil
}

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
	tree := lastValue(entries, "core.worktree")
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

// readHead takes down the branch, for conditional includes.
func (o *opener) readHead(g gitGuard) {
	content, err := g.at.Read(path.Join(relative(g.at.Path(), o.Repo.Dir), "HEAD"), gitFileLimit)
	if err != nil {
		return
	}
	branch, _ := strings.CutPrefix(string(content), "ref: refs/heads/")
	if branch != string(content) {
		o.Repo.Branch = strings.TrimRight(branch, "\r\n")
	}
}
