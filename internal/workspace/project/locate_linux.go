package project

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/gitconfig"
)

// The git folders that belong to a folder are found without git: .git, gitdir and commondir are read here. An agent may
// have written them, so a git folder outside counts only if it points back, and only where git would put it.

// location is a folder that the agent is to get, with its repository. Its layers gather mounts and notes.
type location struct {
	Request
	*layers
	path string // see [Project]
	root string // see [Project.InstanceRoot]
	repo Repo
}

// Repo is the repository that the project lies in. Branch and Remotes are for git's includeIf.
type Repo struct {
	Worktree string // canonical folder that holds .git; equals Dir for a bare one
	Dir      string // git folder of this worktree, canonical
	Common   string // folder with config, hooks and objects; equals Dir but in a linked worktree

	Branch  string   // short name that HEAD points at; empty when detached
	Remotes []string // URLs in its configuration, as written there
}

// findRepository looks in start and the folders above, as git does, for one that has a .git or is a git folder itself
// (bare). It stays in the file system. A home under git (dotfiles) does not count for what lies in it. worktree is ""
// if nothing is found.
func findRepository(start, home string) (worktree string, bare bool) {
	var first, st unix.Stat_t
	_ = unix.Lstat(start, &first) // the loop begins with the same call, and stops at its error
	for dir := start; ; dir = filepath.Dir(dir) {
		switch err := unix.Lstat(dir, &st); {
		case err != nil || st.Dev != first.Dev || dir == home && dir != start:
			return "", false
		case exists(dir + "/.git"):
			return dir, false
		case IsGitFolder(dir):
			return dir, true
		case dir == "/":
			return "", false
		}
	}
}

// otherRoot returns the folder of a repository of another program than git that start lies in, or start. A home does
// not count.
func otherRoot(start, home string) string {
	for dir := start; dir != "/" && dir != home; dir = filepath.Dir(dir) {
		if exists(dir+"/.jj") || exists(dir+"/.hg") || exists(dir+"/.sl") || exists(dir+"/.svn") {
			return dir
		}
	}
	return start
}

// IsGitFolder reports whether a folder has what git takes for a git folder.
func IsGitFolder(dir string) bool {
	return exists(dir+"/HEAD") && exists(dir+"/objects") && exists(dir+"/refs")
}

func exists(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil
}

// contains reports whether a canonical path lies in the project, so that the agent can write there anyway.
func (loc location) contains(path string) bool { return pathname.Below(path, loc.path) }

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

// locate returns loc with repo and root set, and adds the mounts that protect .git. If the repository's common folder
// lies outside of the project it is returned open, and the caller closes it; else common is nil.
func (loc location) locate(worktree string, bare bool) (located location, common *beneath.Folder, err error) {
	at := worktree + "/.git"
	switch {
	case worktree == "" || loc.Beside && !loc.contains(worktree):
		return loc, nil, nil
	case bare && worktree == loc.path && !loc.Beside:
		return loc, nil, refusal(loc.path, "start claudebox in a working tree of it (git worktree add ../work); "+
			"or, if it is no repository of yours, take HEAD, objects and refs out of it",
			"git takes it for a git folder, by its HEAD, objects and refs; git folders do not enter")
	case bare && worktree != loc.path:
		return loc, nil, refusal(loc.path, "start claudebox in a working tree",
			"it lies in the git folder %s", worktree)
	}
	repo, used := Repo{Worktree: worktree, Dir: worktree, Common: worktree}, true // if it is bare
	if !bare {
		repo, used, err = loc.resolve(worktree)
	}
	switch {
	case errors.Is(err, errLink) && loc.WritableConfig:
		loc.note(true, "%s is not protected: %v", at, err)
		return loc, nil, nil
	case err != nil:
		return loc, nil, unprotectable(at, err)
	case !used && !loc.contains(at): // .git does not count, and is out of the agent's reach
		return loc, nil, nil
	case !used || loc.Beside && !loc.contains(repo.Common): // .git is in reach, its git folder is not mounted
		return loc, nil, loc.protectDotGit(worktree)
	}
	if content, err := beneath.ReadIn(repo.Dir, "HEAD", smallLimit); err == nil {
		if branch, is := strings.CutPrefix(string(content), "ref: refs/heads/"); is {
			repo.Branch = strings.TrimRight(branch, "\r\n")
		}
	}
	// The instance is named after root: worktrees share that of their main one, submodules have their own.
	loc.repo, loc.root = repo, strings.TrimSuffix(repo.Common, "/.git")
	if !loc.contains(repo.Common) {
		if common, err = beneath.Open(repo.Common); err != nil {
			return loc, nil, unprotectable(repo.Common, err)
		}
	}
	if worktree != loc.path {
		loc.note(true, "the project is a part of the repository %s: git inside takes the rest for deleted, "+
			"so never `commit -a`, `add -A` or `stash`; `project: git-root` gives all of it", worktree)
	}
	return loc, common, loc.protectDotGit(repo.Worktree)
}

// unprotectable refuses a repository whose host-executed files cannot be made read-only.
func unprotectable(path string, err error) error {
	remedy := "put a real file or folder there, or set `git: {config: writable}` to do without"
	if real, leads := beneath.Canonical(path); errors.Is(err, errLink) && leads == nil && IsGitFolder(real) {
		remedy = fmt.Sprintf("put a file in the link's place, by which git finds the folder as well: cd %s && "+
			"rm .git && echo 'gitdir: %s' >.git && git config core.bare false && git config core.worktree \"$PWD\"",
			cmp.Or(diag.Word(filepath.Dir(path)), "FOLDER"), real)
	}
	return &diag.Error{Op: "protect " + diag.Name(path), Err: err, Remedy: remedy}
}

// protectDotGit keeps the agent from changing a .git file, so that it still names the same git folder.
func (loc location) protectDotGit(worktree string) error {
	base, err := beneath.Open(worktree)
	if err != nil {
		return unprotectable(worktree, err)
	}
	defer base.Close()
	at := below{loc.layers, base}
	what, err := at.look(".git")
	if err == nil && what.Kind != beneath.Dir { // a folder is kept by gitFolder.protect, or out of reach
		at.makeReadOnly(".git", what.Kind, whyMoved)
	}
	return err
}

// errLink is returned if the agent could replace .git.
var errLink = errors.New("it is no plain file or folder, or leads through a link: the agent could replace it")

// resolve follows .git to the git folder and the common folder. used is false for a .git that does not count: git will
// not work inside, which a note says. It fails with [errLink] if the agent could replace .git.
func (loc location) resolve(worktree string) (repo Repo, used bool, err error) {
	base, err := beneath.Open(worktree)
	if err != nil {
		return repo, false, err
	}
	defer base.Close()
	what, err := base.Look(".git")
	at := base.Join(".git")
	switch {
	case err != nil:
		return repo, false, err
	case what.Kind == beneath.Regular:
		return loc.resolveFile(base)
	case what.Kind != beneath.Dir:
		return repo, false, errLink
	}
	repo = Repo{Worktree: worktree, Dir: at, Common: at}
	if !loc.contains(at) { // in a shared folder like /tmp it can be somebody else's
		if err := loc.judgeGitFolder(at); err != nil {
			loc.note(false, "%s is not mounted: %v", at, err)
			return repo, false, nil
		}
	}
	return repo, true, nil
}

// resolveFile follows a .git file. If it leads into the project, the agent could write there anyway. If it leads
// outside, it counts only if the git folder there names this worktree: an agent can write .git, but not that folder.
func (loc location) resolveFile(base *beneath.Folder) (repo Repo, used bool, err error) {
	at := base.Join(".git")
	written, dir, err := gitFile(base, ".git")
	if err != nil {
		loc.note(false, "%s is no .git file git would accept (%v); git will not work inside", at, err)
		return repo, false, nil
	}
	if written != dir && loc.contains(written) { // there is a link on the way, in the project
		return repo, false, errLink
	}
	git, err := beneath.Open(dir)
	if err != nil {
		loc.note(false, "%s points at %s, which is no folder; git will not work inside", at, dir)
		return repo, false, nil
	}
	defer git.Close()
	repo = Repo{Worktree: base.Path(), Dir: dir}
	if repo.Common, err = commonFolderOf(git); err == nil && !loc.contains(repo.Common) {
		if err = loc.judgeGitFolder(repo.Common); err == nil {
			err = pointsBack(git, repo)
		}
	}
	if err != nil {
		loc.note(true, "%s points at %s, which is not mounted: %v", at, dir, err)
	}
	return repo, err == nil, nil
}

// judgeGitFolder returns an error for a folder that must not be mounted as a git folder: it has to obey the rules for
// projects, and be a git folder of the user's.
func (loc location) judgeGitFolder(path string) error {
	if why := loc.whyForbidden(path); why != "" {
		return errors.New(why)
	}
	var st unix.Stat_t
	switch err := unix.Lstat(path, &st); {
	case err != nil:
		return err
	case int(st.Uid) != loc.UID:
		return fmt.Errorf("it belongs to user %d", st.Uid)
	case !IsGitFolder(path):
		return errors.New("it is no git folder")
	}
	return nil
}

// gitFile reads the path in a .git file, which rel names below base; the results are those of [resolved].
func gitFile(base *beneath.Folder, rel string) (written, real string, err error) {
	content, err := base.Read(rel, smallLimit)
	if err != nil {
		return "", "", err
	}
	text, ok := strings.CutPrefix(string(content), "gitdir: ")
	if !ok {
		return "", "", errors.New("it does not begin with \"gitdir: \"")
	}
	return resolved(filepath.Dir(base.Join(rel)), text)
}

// resolved interprets a path as git does that reads it in a file in folder. written is the absolute path, links
// included; real has them resolved.
func resolved(folder, text string) (written, real string, err error) {
	text = strings.TrimRight(text, "\r\n")
	if text == "" || strings.ContainsRune(text, 0) {
		return "", "", errors.New("it names no path")
	}
	if !filepath.IsAbs(text) {
		text = folder + "/" + text
	}
	real, err = filepath.EvalSymlinks(text)
	return filepath.Clean(text), real, err
}

// commonFolderOf returns the path of the common folder of a git folder. Git makes a linked worktree's git folder at
// <common>/worktrees/<name>; any other commondir may be an attempt to have another folder mounted.
func commonFolderOf(git *beneath.Folder) (string, error) {
	content, err := git.Read("commondir", smallLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return git.Path(), nil
	}
	if err != nil {
		return "", err
	}
	_, dir, err := resolved(git.Path(), string(content))
	if err == nil && dir != git.Path() && dir+"/worktrees" != filepath.Dir(git.Path()) {
		err = fmt.Errorf("its commondir names %s, where git would not put it", dir)
	}
	return dir, err
}

// pointsBack returns an error unless a git folder names the worktree's .git as its own: in its gitdir file (linked
// worktree) or in core.worktree (submodule, separate git folder).
func pointsBack(git *beneath.Folder, repo Repo) error {
	if repo.Common != repo.Dir {
		content, err := git.Read("gitdir", smallLimit)
		if err != nil {
			return err
		}
		if _, back, err := resolved(git.Path(), string(content)); err != nil || back != repo.Worktree+"/.git" {
			return errors.New("it belongs to another worktree; `git worktree repair` corrects that")
		}
		return nil
	}
	content, err := git.Read("config", configLimit)
	if err != nil {
		return err
	}
	entries, _ := gitconfig.Parse(content)
	_, back, err := resolved(git.Path(), gitconfig.Last(entries, "core.worktree"))
	if err != nil || back != repo.Worktree {
		return fmt.Errorf("its core.worktree does not name this folder; `%s` corrects that",
			cmp.Or(diag.Command("git config core.worktree", repo.Worktree), "git config core.worktree"))
	}
	return nil
}
