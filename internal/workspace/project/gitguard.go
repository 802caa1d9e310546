package project

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/placeholder"
)

const (
	// configLimit is what a git configuration may have, in bytes.
	configLimit = 1 << 20
	// smallLimit is what a file that holds one path or name may have, in bytes.
	smallLimit = 8 << 10

	// Of the host's git; short, as the audit shows them beside paths.
	whyConfig = "git runs what it names"
	whyHooks  = "git runs hooks"
	whyMoved  = "git finds its config by it"
	whyTodo   = "git runs what it lists"
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
	return o.protectDotGit(o.Repo.Worktree)
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
		Path: o.Repo.Common, Root: o.Repo.Common, Mode: Shared, Dir: true, Why: "git needs it",
	})
	if pathname.Below(o.Path, o.Repo.Common) {
		o.note(true, fmt.Sprintf("the git folder %s holds the project: all in it can be changed inside", o.Repo.Common))
	}
	return guard{o, at}, at.Close, nil
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
	repos        int  // git folders protected so far, beyond the first
	perWorktree  bool // the repository at hand has configuration by worktree
}

// folder protects a git folder that has its own configuration: the common
// folder or a submodule's.
func (g *gitGuard) folder(rel string) error {
	g.pin(rel, whyConfig)
	entries, err := g.config(path.Join(rel, "config"), true)
	if err != nil {
		return err
	}
	if g.repos == 0 {
		g.o.Scope.Hash = hashSize(entries)
	}
	g.perWorktree = worktreeConfig(entries)
	if _, err := g.config(path.Join(rel, "config.worktree"), g.perWorktree); err != nil {
		return err
	}
	for _, step := range []func(string) error{
		g.copies, g.hooks, g.commondir, g.index, g.running, g.alternates,
		g.worktrees, g.modules,
	} {
		if err := step(rel); err != nil {
			return err
		}
	}
	return g.checkout(rel, entries)
}

// worktreeConfig reports whether git reads config.worktree. What git takes for
// false in other words counts as true here: a placeholder does no harm.
func worktreeConfig(entries []gitconfig.Entry) (on bool) {
	for _, e := range entries {
		if e.Key() == "extensions.worktreeconfig" {
			on = e.Bare || e.Value != "false"
		}
	}
	return on
}

// config covers a configuration file with a copy that holds no secrets, and
// gives its entries. Where git would read one that is absent an empty one
// stands in. What it says about remotes and programs is taken down.
func (g *gitGuard) config(rel string, wouldRead bool) ([]gitconfig.Entry, error) {
	what, err := g.at.Look(rel)
	switch {
	case err != nil:
		return nil, g.failed(rel, err)
	case what.Kind == beneath.Absent:
		if wouldRead && !g.o.WritableConfig {
			g.placeholder(placeholder.Placeholder{Rel: rel}, whyConfig)
		}
		return nil, nil
	case what.Kind != beneath.Regular:
		return nil, unprotectable(g.at.Join(rel), "it is no regular file")
	}
	content, err := g.at.Read(rel, configLimit)
	if err != nil {
		return nil, g.failed(rel, err)
	}
	entries, _ := gitconfig.Parse(content) // a broken one is copied as broken
	if !g.o.WritableConfig {
		g.made(rel, gitconfig.Sanitise(content, unneeded(rel)...), whyConfig)
	}
	g.learn(entries, path.Dir(g.at.Join(rel)))
	return entries, nil
}

// unneeded are variables that would stop git inside. `git submodule update`
// writes core.worktree of a submodule anew whenever it finds one there
// (submodule--helper.c, ensure_core_worktree), which the mount forbids; without
// one git takes the folder of the submodule's .git file, which is the same.
func unneeded(rel string) []string {
	if strings.Contains("/"+rel, "/modules/") {
		return []string{"core.worktree"}
	}
	return nil
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

// commondir must be absent in such a folder. An agent that writes one moves
// the host's git to a configuration of its own, so one that says "here"
// stands in; one left over from a killed session says the same. git 2.39 and
// 2.47 take it; libgit2 1.5 takes a plain "." for a path from where it was called
// and finds no repository.
func (g *gitGuard) commondir(rel string) error {
	rel = path.Join(rel, "commondir")
	what, err := g.at.Look(rel)
	if err != nil {
		return g.failed(rel, err)
	}
	if what.Kind != beneath.Absent {
		content, err := g.at.Read(rel, smallLimit)
		if err != nil || string(content) != git.SamePlace {
			return unprotectable(g.at.Join(rel), "it makes git take its configuration from elsewhere; remove it")
		}
	}
	g.placeholder(placeholder.Placeholder{Rel: rel, Content: git.SamePlace}, whyMoved)
	return nil
}

// running protects what git goes on with when it is called again, if it would
// go when an agent had made it: that is the user's own. Anything else stays
// writable, for a rebase to be gone on with inside; what the agent puts there is
// judged when the session has ended. So are the files of other tools.
func (g *gitGuard) running(rel string) error {
	at, err := git.Held(g.at, rel)
	if err != nil {
		return g.failed(rel, err)
	}
	for _, name := range at {
		if err := g.existing(path.Join(rel, name), whyTodo); err != nil {
			return err
		}
	}
	return nil
}

// alternates tells of objects that are kept in another repository, which is
// never mounted for it.
func (g *gitGuard) alternates(rel string) error {
	what, err := g.at.Look(path.Join(rel, "objects/info/alternates"))
	if err == nil && what.Kind != beneath.Absent {
		g.o.note(false, fmt.Sprintf("some objects of %s are in another repository (objects/info/alternates), which "+
			"is not inside; add --mount-ro for it", g.at.Join(rel)))
	}
	return nil
}

// readHead takes down the branch, for conditional includes.
func (o *opener) readHead(g gitGuard) {
	content, err := g.at.Read(path.Join(relative(g.at.Path(), o.Repo.Dir), "HEAD"), smallLimit)
	if err != nil {
		return
	}
	branch, _ := strings.CutPrefix(string(content), "ref: refs/heads/")
	if branch != string(content) {
		o.Repo.Branch = strings.TrimRight(branch, "\r\n")
	}
}
