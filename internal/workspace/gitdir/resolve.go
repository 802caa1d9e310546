package gitdir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/gitconfig"
	"golang.org/x/sys/unix"
)

// Repo is the repository that a folder lies in.
type Repo struct {
	Worktree string // canonical folder that holds .git; equals Dir for a bare one
	Dir      string // git folder of this worktree, canonical
	Common   string // folder with config, hooks and objects; equals Dir but in a linked worktree
}

// Root is what STATE-01 calls the canonical root: worktrees share the state
// of their main worktree; separate git folders and submodules have their own.
func (r Repo) Root() string {
	if filepath.Base(r.Common) == ".git" {
		return filepath.Dir(r.Common)
	}
	return r.Common
}

// Rules are what the caller knows about paths.
type Rules struct {
	// Inside reports whether a path is the agent's already.
	Inside func(path string) bool
	// Mountable tells why a git folder that is not must not become so; nil
	// when it may.
	Mountable func(path string) error
}

// ErrLink says that the agent could exchange .git, or what it leads through:
// it is a link or another thing that is neither file nor folder.
var ErrLink = errors.New("it is a link, or leads through one: the agent could replace it")

// Unusable is a .git that does not count: git will not work inside.
type Unusable struct {
	Text    string
	Suspect bool // it leads out of the project to what is not its own
}

func (u *Unusable) Error() string { return u.Text }

// Resolve follows .git to the git folder and the common folder. It fails with
// an [*Unusable] for what does not count, and with [ErrLink].
func (f Found) Resolve(rules Rules) (Repo, error) {
	if f.Bare {
		return Repo{Worktree: f.Worktree, Dir: f.Worktree, Common: f.Worktree}, nil
	}
	base, err := beneath.Open(f.Worktree)
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
		return Repo{Worktree: f.Worktree, Dir: at, Common: at}, notMountable(at, rules)
	case beneath.Regular:
		return resolveFile(base, rules)
	}
	return Repo{}, ErrLink
}

// notMountable judges a .git folder above the project: in a shared folder
// like /tmp it can be somebody else's.
func notMountable(at string, rules Rules) error {
	if rules.Inside(at) {
		return nil
	}
	if err := rules.Mountable(at); err != nil {
		return &Unusable{Text: fmt.Sprintf("%s is not mounted: %v", at, err)}
	}
	return nil
}

// resolveFile follows a .git file. One that points into the project gives the
// agent nothing new. One that points outside counts only if its target points
// back: anybody can write the text, only the target's owner the answer.
func resolveFile(base *beneath.Folder, rules Rules) (Repo, error) {
	at := base.Join(".git")
	dir, err := target(base, rules)
	if errors.Is(err, ErrLink) {
		return Repo{}, err
	}
	if err != nil {
		return Repo{}, &Unusable{Text: fmt.Sprintf("%s is no .git file git would accept (%v); git will not work inside",
			at, err)}
	}
	git, err := beneath.Open(dir)
	if err != nil {
		return Repo{}, &Unusable{Text: fmt.Sprintf("%s points at %s, which is no folder; git will not work inside", at,
			dir)}
	}
	defer git.Close()
	repo := Repo{Worktree: base.Path(), Dir: dir}
	if repo.Common, err = common(git); err == nil && !rules.Inside(repo.Common) {
		err = outside(git, repo, rules)
	}
	if err != nil {
		return Repo{}, &Unusable{
			Text:    fmt.Sprintf("%s points at %s, which is not mounted: %v", at, dir, err),
			Suspect: true,
		}
	}
	return repo, nil
}

// outside judges a git folder that is not the agent's yet.
func outside(git *beneath.Folder, repo Repo, rules Rules) error {
	if err := rules.Mountable(repo.Common); err != nil {
		return err
	}
	return pointsBack(git, repo)
}

// fileLimit is more than any path needs; git itself allows 1 MiB.
const fileLimit = 2 * unix.PathMax

// target gives the canonical folder that a .git file points at. One that is
// reached through a link below base can be exchanged by exchanging the link.
func target(base *beneath.Folder, rules Rules) (string, error) {
	content, err := base.Read(".git", fileLimit)
	if err != nil {
		return "", err
	}
	text, ok := strings.CutPrefix(string(content), "gitdir: ")
	if !ok {
		return "", errors.New("it does not begin with \"gitdir: \"")
	}
	text = strings.TrimRight(text, "\r\n")
	real, err := resolve(base.Path(), text)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(text) {
		text = base.Path() + "/" + text
	}
	if written := filepath.Clean(text); written != real && rules.Inside(written) {
		return "", ErrLink
	}
	return real, nil
}

// resolve makes a path that a file in folder names canonical.
func resolve(folder, name string) (string, error) {
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
	dir, err := resolve(git.Path(), strings.TrimRight(string(content), "\r\n"))
	if err != nil {
		return "", err
	}
	if dir != git.Path() && dir+"/worktrees" != filepath.Dir(git.Path()) {
		return "", fmt.Errorf("its commondir names %s, where git would not put it", dir)
	}
	return dir, nil
}

// configLimit is what a git configuration may have, in bytes.
const configLimit = 1 << 20

// pointsBack checks that a git folder names the worktree's .git as its own: by its gitdir file (linked worktree) or
// core.worktree
// (submodule, separate git folder).
func pointsBack(git *beneath.Folder, repo Repo) error {
	if repo.Common != repo.Dir {
		content, err := git.Read("gitdir", fileLimit)
		if err != nil {
			return err
		}
		back, err := resolve(git.Path(), strings.TrimRight(string(content), "\r\n"))
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
	back, err := resolve(git.Path(), gitconfig.Last(entries, "core.worktree"))
	if err != nil || back != repo.Worktree {
		return fmt.Errorf("its core.worktree does not name this folder; `git config core.worktree %s` corrects that",
			repo.Worktree)
	}
	return nil
}
