package project

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
)

// The git folders that belong to a folder are judged without git. An agent may have written .git and what it leads to,
// so a git folder outside counts only if it points back, and only where git would put it.

// location is a folder that the agent is to get, with its repository.
type location struct {
	Request
	path   string // see [Project]
	root   string // see [Project.InstanceRoot]
	repo   Repo
	dotGit string // a .git file that has to stay as it is, so that it still names the same git folder; empty: none
	told   notes
}

// Repo is the repository that the project lies in. Branch and Remotes are for git's includeIf.
type Repo struct {
	Worktree string // canonical folder that holds .git; equals Dir for a bare one
	Dir      string // git folder of this worktree, canonical
	Common   string // folder with config, hooks and objects; equals Dir but in a linked worktree

	Branch  string   // short name that HEAD points at; empty when detached
	Remotes []string // URLs in its configuration, as written there
}

// contains reports whether a canonical path lies in the project, so that the agent can write there anyway.
func (loc location) contains(path string) bool { return pathname.Below(path, loc.path) }

// outside reports whether the repository's common folder lies outside of the project.
func (loc location) outside() bool { return loc.repo.Common != "" && !loc.contains(loc.repo.Common) }

// given reports whether a canonical path lies in the project or is a folder beside it of the profile's `worktrees`.
func (loc location) given(path string) bool {
	rel, err := filepath.Rel(loc.path, path)
	return loc.contains(path) || err == nil && slices.ContainsFunc(loc.Worktrees, func(glob string) bool {
		is, err := filepath.Match(glob, rel)
		return is && err == nil
	})
}

// relative returns path relative to base; "." for base itself.
func relative(base, path string) string {
	rel, err := filepath.Rel(base, path)
	if err != nil {
		return "." // both are absolute: cannot happen
	}
	return rel
}

// locate says by its surroundings where the project lies and which repository is its own, or why the agent must not get
// it.
func (s surroundings) locate() (loc location, err error) {
	loc = location{Request: s.Request, path: s.path, root: s.path}
	if loc.told, err = s.judgePlace(); err != nil {
		return loc, err
	}
	at := s.worktree + "/.git"
	switch {
	case s.worktree == "":
		return loc, nil
	case s.bare && s.worktree != s.path:
		return loc, refusal(s.path, "start claudebox in a working tree", "it lies in the git folder %s", s.worktree)
	case s.bare && !s.Beside:
		return loc, refusal(s.path, "start claudebox in a working tree of it (git worktree add ../work); "+
			"or, if it is no repository of yours, take HEAD, objects and refs out of it",
			"git takes it for a git folder, by its HEAD, objects and refs; git folders do not enter")
	}
	used, told, err := s.judgeDotGit()
	loc.told = append(loc.told, told...)
	switch {
	case errors.Is(err, errLink) && s.WritableConfig:
		loc.told.note(true, "%s is not protected: %v", at, err)
		return loc, nil
	case errors.Is(err, errLink) && s.git.Leads != "":
		return loc, unprotectable(at, err, "put a file in the link's place, by which git finds the folder as well: cd "+
			cmp.Or(diag.Word(s.worktree), "FOLDER")+" && rm .git && echo "+
			cmp.Or(diag.Word("gitdir: "+s.git.Leads), "'gitdir: GIT_FOLDER'")+
			" >.git && git config core.bare false && git config core.worktree \"$PWD\"")
	case err != nil:
		return loc, unprotectable(at, err, usualMend)
	}
	if s.git.Kind == beneath.Regular && (used || !s.outside(at)) { // a folder is kept by gitFolder.protect
		loc.dotGit = at
	}
	if !used || s.Beside && s.outside(s.git.Common) { // its git folder is not mounted
		return loc, nil
	}
	// The instance is named after root: worktrees share that of their main one, submodules have their own.
	loc.root = strings.TrimSuffix(s.git.Common, "/.git")
	loc.repo = Repo{Worktree: s.worktree, Dir: s.git.Dir, Common: s.git.Common, Branch: s.git.Branch}
	if s.worktree != s.path {
		loc.told.note(true, "the project is a part of the repository %s: git inside takes the rest for deleted, "+
			"so never `commit -a`, `add -A` or `stash`; `project: git-root` gives all of it", s.worktree)
	}
	return loc, nil
}

const usualMend = "put a real file or folder there, or set `git: {config: writable}` to do without"

// unprotectable refuses a repository whose host-executed files cannot be made read-only.
func unprotectable(path string, err error, remedy string) error {
	return &diag.Error{Op: "protect " + diag.Name(path), Err: err, Remedy: remedy}
}

// errLink is returned if the agent could replace .git.
var errLink = errors.New("it is no plain file or folder, or leads through a link: the agent could replace it")

// judgeDotGit reports whether .git counts: else git will not work inside, which a note says. It fails with [errLink] if
// the agent could replace .git. If a .git file leads into the project, the agent could write there anyway. If it leads
// outside, it counts only if the git folder there names this worktree: an agent can write .git, but not that folder.
func (s surroundings) judgeDotGit() (used bool, told notes, err error) {
	g, at := s.git, s.worktree+"/.git"
	file := g.Kind == beneath.Regular
	why := s.whyNotOurs()
	switch {
	case g.Fault != nil:
		return false, nil, g.Fault
	case s.bare:
		return true, nil, nil
	case !file && g.Kind != beneath.Dir, file && g.Invalid == nil && g.Written != g.Dir && !s.outside(g.Written):
		return false, nil, errLink
	case g.Invalid != nil:
		told.note(false, "%s is no .git file git would accept (%v); git will not work inside", at, g.Invalid)
	case g.Gone:
		told.note(false, "%s points at %s, which is no folder; git will not work inside", at, g.Dir)
	case why != nil && file:
		told.note(true, "%s points at %s, which is not mounted: %v", at, g.Dir, why)
	case why != nil:
		told.note(false, "%s is not mounted: %v", at, why)
	}
	return told == nil, told, nil
}

// whyNotOurs says why the git folder must not be mounted. A common folder outside has to obey the rules for projects,
// to be a git folder of the user's (in a shared folder like /tmp it can be somebody else's), and to be that of the .git
// file which leads there.
func (s surroundings) whyNotOurs() error {
	g := s.git
	linked := g.Common != g.Dir
	why, _ := whyForbidden(s.rules, g.Common)
	switch {
	case g.NoCommon != nil || !g.Asked:
		return g.NoCommon
	case why != "":
		return errors.New(why)
	case g.Unseen != nil:
		return g.Unseen
	case g.Owner != s.UID:
		return fmt.Errorf("it belongs to user %d", g.Owner)
	case !g.IsFolder:
		return errors.New("it is no git folder")
	case g.Kind != beneath.Regular:
		return nil
	case g.NoBack != nil:
		return g.NoBack
	case linked && g.Back != s.worktree+"/.git":
		return errors.New("it belongs to another worktree; `git worktree repair` corrects that")
	case !linked && g.Back != s.worktree:
		return fmt.Errorf("its core.worktree does not name this folder; `%s` corrects that",
			cmp.Or(diag.Command("git config core.worktree", s.worktree), "git config core.worktree"))
	}
	return nil
}
