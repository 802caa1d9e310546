package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/gitconfig"
)

// The git folders that belong to a folder are found without git: .git, gitdir and
// commondir are read here. All of them may have been written by an agent, so a git
// folder outside counts only if it points back, and only where git would put it.

// found is where a repository is: names, nothing of what they hold. The zero value
// is no repository.
type found struct {
	worktree string // folder with an entry .git
	bare     bool   // the folder is itself a git folder
}

// find looks for .git in start and above as git does, up to the border of
// the file system. A home folder under git (dotfiles) is not the project of
// what lies in it, so the search ends there.
func find(start, home string) (found, error) {
	device, err := deviceOf(start)
	if err != nil {
		return found{}, &os.PathError{Op: "look at", Path: start, Err: err}
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if at, err := deviceOf(dir); err != nil || at != device || dir == home && dir != start {
			return found{}, nil
		}
		if exists(dir + "/.git") {
			return found{worktree: dir}, nil
		}
		if IsGitFolder(dir) {
			return found{dir, true}, nil
		}
		if dir == "/" {
			return found{}, nil
		}
	}
}

// IsGitFolder reports whether a folder has what git takes for a git folder.
func IsGitFolder(dir string) bool {
	return exists(dir+"/HEAD") && exists(dir+"/objects") && exists(dir+"/refs")
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

// errLink says that the agent could exchange .git, or what it leads through:
// it is a link or another thing that is neither file nor folder.
var errLink = errors.New("it is a link, or leads through one: the agent could replace it")

// unusable is a .git that does not count: git will not work inside.
type unusable struct {
	text    string
	suspect bool // it leads out of the project to what is not its own
}

func (u *unusable) Error() string { return u.text }

// resolve follows .git to the git folder and the common folder. It fails with
// an [*unusable] for what does not count, and with [errLink].
func (o *opener) resolve(f found) (repo Repo, err error) {
	if f.bare {
		return Repo{Worktree: f.worktree, Dir: f.worktree, Common: f.worktree}, nil
	}
	base, err := beneath.Open(f.worktree)
	if err != nil {
		return Repo{}, err
	}
	defer base.Close()
	what, err := base.Look(".git")
	if err != nil {
		return Repo{}, err
	}
	switch what.Kind {
	case beneath.Dir:
		at := base.Join(".git")
		return Repo{Worktree: f.worktree, Dir: at, Common: at}, o.notMountable(at)
	case beneath.Regular:
		return o.resolveFile(base)
	}
	return Repo{}, errLink
}

// notMountable judges a .git folder above the project: in a shared folder
// like /tmp it can be somebody else's.
func (o *opener) notMountable(at string) error {
	if o.contains(at) {
		return nil
	}
	if err := o.judgeGitFolder(at); err != nil {
		return &unusable{text: fmt.Sprintf("%s is not mounted: %v", at, err)}
	}
	return nil
}

// resolveFile follows a .git file. One that points into the project gives the
// agent nothing new. One that points outside counts only if its target points
// back: anybody can write the text, only the target's owner the answer.
func (o *opener) resolveFile(base *beneath.Folder) (Repo, error) {
	at := base.Join(".git")
	dir, err := o.target(base)
	if errors.Is(err, errLink) {
		return Repo{}, err
	}
	if err != nil {
		return Repo{}, &unusable{text: fmt.Sprintf("%s is no .git file git would accept (%v); git will not work inside",
			at, err)}
	}
	git, err := beneath.Open(dir)
	if err != nil {
		return Repo{}, &unusable{text: fmt.Sprintf("%s points at %s, which is no folder; git will not work inside", at,
			dir)}
	}
	defer git.Close()
	repo := Repo{Worktree: base.Path(), Dir: dir}
	if repo.Common, err = common(git); err == nil && !o.contains(repo.Common) {
		if err = o.judgeGitFolder(repo.Common); err == nil {
			err = pointsBack(git, repo)
		}
	}
	if err != nil {
		return Repo{}, &unusable{
			text:    fmt.Sprintf("%s points at %s, which is not mounted: %v", at, dir, err),
			suspect: true,
		}
	}
	return repo, nil
}

// fileLimit is more than any path needs; git itself allows 1 MiB.
const fileLimit = 2 * unix.PathMax

// target gives the canonical folder that a .git file points at. One that is
// reached through a link below base can be exchanged by exchanging the link.
func (o *opener) target(base *beneath.Folder) (string, error) {
	content, err := base.Read(".git", fileLimit)
	if err != nil {
		return "", err
	}
	text, ok := strings.CutPrefix(string(content), "gitdir: ")
	if !ok {
		return "", errors.New("it does not begin with \"gitdir: \"")
	}
	text = strings.TrimRight(text, "\r\n")
	real, err := resolved(base.Path(), text)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(text) {
		text = base.Path() + "/" + text
	}
	if written := filepath.Clean(text); written != real && o.contains(written) {
		return "", errLink
	}
	return real, nil
}

// resolved makes a path that a file in folder names canonical.
func resolved(folder, name string) (string, error) {
	if name == "" || strings.ContainsRune(name, 0) {
		return "", errors.New("it names no path")
	}
	if !filepath.IsAbs(name) {
		name = folder + "/" + name
	}
	return filepath.EvalSymlinks(name)
}

// common gives the common folder of a git folder. Git makes a linked
// worktree's at <common>/worktrees/<name>; any other commondir is somebody's
// attempt to have another folder mounted.
func common(git *beneath.Folder) (string, error) {
	content, err := git.Read("commondir", fileLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return git.Path(), nil
	}
	if err != nil {
		return "", err
	}
	dir, err := resolved(git.Path(), strings.TrimRight(string(content), "\r\n"))
	if err != nil {
		return "", err
	}
	if dir != git.Path() && dir+"/worktrees" != filepath.Dir(git.Path()) {
		return "", fmt.Errorf("its commondir names %s, where git would not put it", dir)
	}
	return dir, nil
}

// pointsBack checks that a git folder names the worktree's .git as its own: by
// its gitdir file (linked worktree) or core.worktree (submodule, separate git
// folder).
func pointsBack(git *beneath.Folder, repo Repo) error {
	if repo.Common != repo.Dir {
		content, err := git.Read("gitdir", fileLimit)
		if err != nil {
			return err
		}
		back, err := resolved(git.Path(), strings.TrimRight(string(content), "\r\n"))
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
	back, err := resolved(git.Path(), gitconfig.Last(entries, "core.worktree"))
	if err != nil || back != repo.Worktree {
		return fmt.Errorf("its core.worktree does not name this folder; `git config core.worktree %s` corrects that",
			repo.Worktree)
	}
	return nil
}
