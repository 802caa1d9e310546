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
	"claudebox/internal/workspace/gitdir"
	"golang.org/x/sys/unix"
)

// Repo is the repository that the project lies in, and what conditional
// includes ask about it. Where Worktree lies above the project, git inside
// finds the repository only with GIT_DISCOVERY_ACROSS_FILESYSTEM=1: the
// folders between are of another file system there (measured).
type Repo struct {
	gitdir.Repo
	Branch  string   // short name that HEAD points at; empty when detached
	Remotes []string // URLs in its configuration, as written there
}

// repository settles which git folders belong to the project and protects
// them.
func (o *opener) repository(found gitdir.Found) error {
	if found.Worktree == "" || o.beside && !o.contains(found.Worktree) {
		return nil
	}
	if found.Bare && found.Worktree != o.Path {
		return diag.Errorf("take "+o.Path+" as the project", "start claudebox in a working tree",
			"it lies in the git folder %s", found.Worktree)
	}
	repo, err := found.Resolve(gitdir.Rules{Inside: o.contains, Mountable: o.judgeGitFolder})
	if err != nil {
		return o.unusable(found, err)
	}
	if o.beside && !o.contains(repo.Common) {
		return o.protectDotGit(found.Worktree)
	}
	o.Repo.Repo, o.Root = repo, repo.Root()
	if err := o.openCommon(); err != nil {
		return err
	}
	if found.Worktree != o.Path {
		o.note(true, fmt.Sprintf("the project is a part of the repository %s: git inside takes the rest for deleted, "+
			"so never `commit -a`, `add -A` or `stash`; `project: git-root` gives all of it", found.Worktree))
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
func (o *opener) unusable(found gitdir.Found, err error) error {
	at := found.Worktree + "/.git"
	var u *gitdir.Unusable
	switch {
	case errors.As(err, &u):
		o.note(u.Suspect, u.Text)
		if !o.contains(at) {
			return nil
		}
		return o.protectDotGit(found.Worktree)
	case errors.Is(err, gitdir.ErrLink) && o.WritableConfig:
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
	if !gitdir.Looks(path) {
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
