package project

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"claudebox/internal/beneath"
	"claudebox/internal/diag"
	"claudebox/internal/gitconfig"
	"golang.org/x/sys/unix"
)

// Repo is the repository that the project lies in.
type Repo struct {
	Worktree string   // canonical folder that holds .git; equals Dir for a bare one
	Dir      string   // git folder of this worktree, canonical
	Common   string   // folder with config, hooks and objects; equals Dir but in a linked worktree
	Branch   string   // short name that HEAD points at; empty when detached
	Remotes  []string // URLs in its configuration, as written there
}

// gitFound is what discover saw: nothing but names.
type gitFound struct {
	worktree string // folder with an entry .git; empty: none
	bare     bool   // the folder is itself a git folder
}

// discover looks for .git in start and above as git does, up to the border of
// the file system. A home folder under git (dotfiles) is not the project of
// what lies in it, so the search ends there.
func discover(start, home string) (gitFound, error) {
	device, err := deviceOf(start)
	if err != nil {
		return gitFound{}, &diag.Error{Op: "look at " + start, Err: err, Remedy: elsewhere}
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if at, err := deviceOf(dir); err != nil || at != device || dir == home && dir != start {
			return gitFound{}, nil
		}
		if exists(dir + "/.git") {
			return gitFound{worktree: dir}, nil
		}
		if exists(dir+"/HEAD") && exists(dir+"/objects") && exists(dir+"/refs") {
			return gitFound{worktree: dir, bare: true}, nil
		}
		if dir == "/" {
			return gitFound{}, nil
		}
	}
}

func deviceOf(path string) (uint64, error) {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	return uint64(st.Dev), err
}

func exists(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil
}

// repository settles which git folders belong to the project and protects
// them.
func (o *opener) repository(found gitFound) error {
	if found.worktree == "" {
		return nil
	}
	if found.bare && found.worktree != o.Path {
		return diag.Errorf("take "+o.Path+" as the project", "start claudebox in a working tree",
			"it lies in the git folder %s", found.worktree)
	}
	repo, err := o.resolve(found)
	if err != nil || repo.Dir == "" {
		return err
	}
	o.Repo = repo
	o.Root = repo.root()
	if found.worktree != o.Path {
		o.note(true, fmt.Sprintf("the project is a part of the repository %s: git inside takes the rest for deleted, "+
			"so never `commit -a` or `add -A`; `project: git-root` gives all of it", found.worktree))
	}
	return o.protectRepo()
}

// root is what STATE-01 calls the canonical root: worktrees share the state
// of their main worktree; separate git folders and submodules have their own.
func (r Repo) root() string {
	if filepath.Base(r.Common) == ".git" {
		return filepath.Dir(r.Common)
	}
	return r.Common
}

// resolve follows .git to its git folder and common folder. A result without
// a Dir is a repository that does not count; a note says why.
func (o *opener) resolve(found gitFound) (Repo, error) {
	if found.bare {
		return Repo{Worktree: found.worktree, Dir: found.worktree, Common: found.worktree}, nil
	}
	at := found.worktree + "/.git"
	base, err := beneath.Open(found.worktree)
	if err != nil {
		return Repo{}, &diag.Error{Op: "open " + found.worktree, Err: err, Remedy: elsewhere}
	}
	defer base.Close()
	what, err := base.Look(".git")
	if err != nil {
		return Repo{}, &diag.Error{Op: "look at " + at, Err: err, Remedy: elsewhere}
	}
	switch {
	case what.Kind == beneath.Dir && !o.contains(at):
		return o.resolveAbove(Repo{Worktree: found.worktree, Dir: at, Common: at})
	case what.Kind == beneath.Dir:
		return Repo{Worktree: found.worktree, Dir: at, Common: at}, nil
	case what.Kind == beneath.Regular:
		return o.resolveFile(base)
	case o.WritableConfig:
		o.note(true, at+" is not a folder and not protected")
		return Repo{}, nil
	}
	return Repo{}, unprotectable(at, "it is a link: the agent could replace it")
}

// resolveAbove judges a .git folder above the project: in a shared folder
// like /tmp it can be somebody else's.
func (o *opener) resolveAbove(repo Repo) (Repo, error) {
	if err := o.judgeGitFolder(repo.Dir); err != nil {
		o.note(false, fmt.Sprintf("%s is not mounted: %v", repo.Dir, err))
		return Repo{}, nil
	}
	return repo, nil
}

// unprotectable refuses a repository whose host-executed files cannot be
// made read-only.
func unprotectable(path, why string) error {
	return diag.Errorf("protect "+path, "put a real file or folder there, or set `git: {config: writable}` to do without",
		"%s", why)
}

// resolveFile reads a .git file. One that points into the project gives the
// agent nothing new. One that points outside counts only if its target points
// back: anybody can write the text, only the target's owner the answer.
func (o *opener) resolveFile(base *beneath.Folder) (Repo, error) {
	at := base.Join(".git")
	repo := Repo{Worktree: base.Path()}
	var err error
	if repo.Dir, err = readGitFile(base); err != nil {
		o.note(false, fmt.Sprintf("%s is no .git file git would accept (%v); git will not work inside", at, err))
		return Repo{}, nil
	}
	target, err := beneath.Open(repo.Dir)
	if err != nil {
		o.note(false, fmt.Sprintf("%s points at %s, which is no folder; git will not work inside", at, repo.Dir))
		return Repo{}, nil
	}
	defer target.Close()
	if repo.Common, err = commonOf(target); err == nil && !o.contains(repo.Common) {
		err = o.pointsBack(target, repo)
	}
	if err != nil {
		o.note(true, fmt.Sprintf("%s points at %s, which is not mounted: %v", at, repo.Dir, err))
		return Repo{}, nil
	}
	return repo, nil
}

// gitFileLimit is more than any path needs; git itself allows 1 MiB.
const gitFileLimit = 2 * unix.PathMax

// readGitFile gives the canonical target of a .git file.
func readGitFile(base *beneath.Folder) (string, error) {
	content, err := base.Read(".git", gitFileLimit)
	if err != nil {
		return "", err
	}
	text, ok := strings.CutPrefix(string(content), "gitdir: ")
	if !ok {
		return "", errors.New("it does not begin with \"gitdir: \"")
	}
	return resolveFrom(base.Path(), strings.TrimRight(text, "\r\n"))
}

// resolveFrom makes a path that a file in folder names canonical.
func resolveFrom(folder, name string) (string, error) {
	if name == "" || strings.ContainsRune(name, 0) {
		return "", errors.New("it names no path")
	}
	if !filepath.IsAbs(name) {
		name = folder + "/" + name
	}
	return filepath.EvalSymlinks(name)
}

// commonOf gives the common folder of a git folder. Git makes a linked
// worktree's at <common>/worktrees/<name>; any other commondir is somebody's
// attempt to have another folder mounted.
func commonOf(git *beneath.Folder) (string, error) {
	content, err := git.Read("commondir", gitFileLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return git.Path(), nil
	}
	if err != nil {
		return "", err
	}
	common, err := resolveFrom(git.Path(), strings.TrimRight(string(content), "\r\n"))
	if err != nil {
		return "", err
	}
	if common != git.Path() && common+"/worktrees" != filepath.Dir(git.Path()) {
		return "", fmt.Errorf("its commondir names %s, where git would not put it", common)
	}
	return common, nil
}

// pointsBack checks that a git folder outside the project names the project's
// .git as its own: by its gitdir file (linked worktree) or core.worktree
// (submodule, separate git folder).
func (o *opener) pointsBack(git *beneath.Folder, repo Repo) error {
	if err := o.judgeGitFolder(repo.Common); err != nil {
		return err
	}
	if repo.Common != repo.Dir {
		content, err := git.Read("gitdir", gitFileLimit)
		if err != nil {
			return err
		}
		back, err := resolveFrom(git.Path(), strings.TrimRight(string(content), "\r\n"))
		if err != nil || back != repo.Worktree+"/.git" {
			return errors.New("it belongs to another worktree; `git worktree repair` corrects that")
		}
		return nil
	}
	content, err := git.Read("config", configLimit)
	if err != nil {
		return err
	}
	entries, _ := gitconfig.Parse(content)
	back, err := resolveFrom(git.Path(), lastValue(entries, "core.worktree"))
	if err != nil || back != repo.Worktree {
		return fmt.Errorf("its core.worktree does not name this folder; `git config core.worktree %s` corrects that", repo.Worktree)
	}
	return nil
}

func lastValue(entries []gitconfig.Entry, key string) (value string) {
	for _, e := range entries {
		if e.Key() == key && !e.Bare {
			value = e.Value
		}
	}
	return value
}

// judgeGitFolder holds a folder that would be mounted for git's sake to the
// rules for projects, and to being a git folder of the user's.
func (o *opener) judgeGitFolder(path string) error {
	for _, rule := range o.rules() {
		if rule.relation.holds(path, strings.Replace(rule.path, "~", o.Home, 1)) {
			return fmt.Errorf("%s %s", path, rule.why)
		}
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err
	}
	if int(st.Uid) != o.UID {
		return fmt.Errorf("it belongs to user %d", st.Uid)
	}
	if !exists(path+"/HEAD") || !exists(path+"/objects") || !exists(path+"/refs") {
		return errors.New("it is no git folder")
	}
	return nil
}

// contains tells whether a canonical path lies in the project and is thus
// the agent's already.
func (o *opener) contains(path string) bool { return isBelow(path, o.Path) }
