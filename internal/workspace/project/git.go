package project

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"golang.org/x/sys/unix"
)

// Repo is the repository that the project lies in, and what conditional
// includes ask about it. Where Worktree lies above the project, git inside
// finds the repository only with GIT_DISCOVERY_ACROSS_FILESYSTEM=1: the
// folders between are of another file system there (measured).
type Repo struct {
	Worktree string // canonical folder that holds .git; equals Dir for a bare one
	Dir      string // git folder of this worktree, canonical
	Common   string // folder with config, hooks and objects; equals Dir but in a linked worktree

	Branch  string   // short name that HEAD points at; empty when detached
	Remotes []string // URLs in its configuration, as written there
}

// Root is what STATE-01 calls the canonical root: worktrees share the state
// of their main worktree; separate git folders and submodules have their own.
func (r Repo) Root() string {
	if filepath.Base(r.Common) == ".git" {
		return filepath.Dir(r.Common)
	}
	return r.Common
}

// repository settles which git folders belong to the project and protects
// them.
func (o *opener) repository(found found) error {
	if found.worktree == "" || o.beside && !o.contains(found.worktree) {
		return nil
	}
	if found.bare && found.worktree != o.Path {
		return diag.Errorf("take "+o.Path+" as the project", "start claudebox in a working tree",
			"it lies in the git folder %s", found.worktree)
	}
	repo, err := o.resolve(found)
	if err != nil {
		return o.unusable(found, err)
	}
	if o.beside && !o.contains(repo.Common) {
		return o.protectDotGit(found.worktree)
	}
	o.Repo, o.Root = repo, repo.Root()
	if err := o.openCommon(); err != nil {
		return err
	}
	if found.worktree != o.Path {
		o.note(true, fmt.Sprintf("the project is a part of the repository %s: git inside takes the rest for deleted, "+
			"so never `commit -a`, `add -A` or `stash`; `project: git-root` gives all of it", found.worktree))
	}
	return o.protectDotGit(o.Repo.Worktree)
}

// openCommon opens the folder with the repository's configuration, where that
// lies outside of the project, has it mounted, and takes down the branch.
func (o *opener) openCommon() (err error) {
	if content, err := beneath.ReadIn(o.Repo.Dir, "HEAD", smallLimit); err == nil {
		if branch, is := strings.CutPrefix(string(content), "ref: refs/heads/"); is {
			o.Repo.Branch = strings.TrimRight(branch, "\r\n")
		}
	}
	if o.contains(o.Repo.Common) {
		return nil
	}
	if o.common, err = beneath.Open(o.Repo.Common); err != nil {
		return unprotectable(o.Repo.Common, err.Error())
	}
	o.Mounts = append(o.Mounts, Mount{
		Path: o.Repo.Common, Root: o.Repo.Common, Mode: Shared, Dir: true, Why: "git needs it",
	})
	if pathname.Below(o.Path, o.Repo.Common) {
		o.note(true, fmt.Sprintf("the git folder %s holds the project: all in it can be changed inside", o.Repo.Common))
	}
	return nil
}

// relative gives path below base; "." for base itself.
func relative(base, path string) string {
	rel, err := filepath.Rel(base, path)
	if err != nil {
		return "." // both are absolute: cannot happen
	}
	return rel
}

// unusable says why there is no repository inside. A .git that the agent could
// exchange stops the launch, unless the user does without its protection.
func (o *opener) unusable(found found, err error) error {
	at := found.worktree + "/.git"
	var u *unusable
	switch {
	case errors.As(err, &u):
		o.note(u.suspect, u.text)
		if !o.contains(at) {
			return nil
		}
		return o.protectDotGit(found.worktree)
	case errors.Is(err, errLink) && o.WritableConfig:
		o.note(true, at+" is not protected: "+err.Error())
		return nil
	}
	return unprotectable(at, err.Error())
}

// unprotectable refuses a repository whose host-executed files cannot be
// made read-only.
func unprotectable(path, why string) error {
	return diag.Errorf("protect "+path,
		"put a real file or folder there, or set `git: {config: writable}` to do without",
		"%s", why)
}

// protectDotGit keeps a .git file from being pointed elsewhere.
func (o *opener) protectDotGit(worktree string) error {
	base, err := beneath.Open(worktree)
	if err != nil {
		return unprotectable(worktree, err.Error())
	}
	defer base.Close()
	if what, err := base.Look(".git"); err == nil && what.Kind == beneath.Dir {
		return nil // pinned, or none of the project's
	}
	return guard{o, base}.existing(".git", whyMoved)
}

// judgeGitFolder holds a folder that would be mounted for git's sake to the
// rules for projects, and to being a git folder of the user's.
func (o *opener) judgeGitFolder(path string) error {
	if why := o.forbids(path); why != "" {
		return errors.New(why)
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err
	}
	if int(st.Uid) != o.UID {
		return fmt.Errorf("it belongs to user %d", st.Uid)
	}
	if !IsGitFolder(path) {
		return errors.New("it is no git folder")
	}
	return nil
}

// contains reports whether a canonical path lies in the project and is thus
// the agent's already.
func (o *opener) contains(path string) bool { return pathname.Below(path, o.Path) }

// given reports whether a canonical path lies in the project or is a folder
// beside it that the profile's `worktrees` give away as well.
func (o *opener) given(path string) bool {
	rel, err := filepath.Rel(o.Path, path)
	return o.contains(path) || err == nil && slices.ContainsFunc(o.Worktrees, func(glob string) bool {
		is, err := filepath.Match(glob, rel)
		return is && err == nil
	})
}
