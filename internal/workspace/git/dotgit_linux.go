package git

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/gitconfig"
)

// pathLimit is how large a file that holds one path or name may be, in bytes.
const pathLimit = 8 << 10

// DotGit is what is called .git, and the git folder that it leads to: what is on the disk, read as git reads it. An
// agent may have written all of it that it can reach.
type DotGit struct {
	Kind    beneath.Kind
	Fault   error  // it cannot be looked at
	Leads   string // of a link: to which git folder; empty: to none
	Written string // of a file: the path in it, absolute, links included
	Invalid error  // of a file: why git does not accept it

	Dir      string // the git folder, canonical
	Gone     bool   // there is no such folder
	Branch   string // short name that its HEAD points at; empty when detached
	Common   string // the folder with config, hooks and objects, canonical
	NoCommon error  // why its commondir names none
	Asked    bool   // it was asked whose Common is, and so:
	Owner    int    // of Common
	Unseen   error  // why Common cannot be looked at
	IsFolder bool   // Common is one, see [IsFolder]
	Back     string // what the git folder that a file leads to names as its own .git, or as its working tree
	NoBack   error  // why that cannot be read
}

// Discover looks in start and the folders above, as git does, for one that has a .git or is a git folder itself (bare).
// It stays in the file system. A home under git (dotfiles) does not count for what lies in it. worktree is "" if
// nothing is found.
func Discover(start, home string) (worktree string, bare bool) {
	var first, st unix.Stat_t
	for dir := start; ; dir = filepath.Dir(dir) {
		err := unix.Lstat(dir, &st)
		if dir == start {
			first = st
		}
		switch {
		case err != nil || st.Dev != first.Dev || dir == home && dir != start:
			return "", false
		case beneath.Exists(dir + "/.git"):
			return dir, false
		case IsFolder(dir):
			return dir, true
		case dir == "/":
			return "", false
		}
	}
}

// IsFolder reports whether a folder has what git takes for a git folder.
func IsFolder(dir string) bool {
	return beneath.Exists(dir+"/HEAD") && beneath.Exists(dir+"/objects") && beneath.Exists(dir+"/refs")
}

// ReadDotGit reads the .git of a working tree, or a bare git folder. asked says of which common folders it has to be
// known whose they are.
func ReadDotGit(worktree string, bare bool, asked func(common string) bool) DotGit {
	base, err := beneath.Open(worktree)
	if err != nil {
		return DotGit{Fault: err}
	}
	defer base.Close()
	what, err := base.Look(".git")
	g := DotGit{Kind: what.Kind, Fault: err, Dir: base.Join(".git")}
	switch {
	case bare:
		g.Dir = worktree
	case g.Kind == beneath.Link:
		if real, err := beneath.Canonical(g.Dir); err == nil && IsFolder(real) {
			g.Leads = real
		}
		return g
	case g.Kind == beneath.Regular:
		if g.Written, g.Dir, g.Invalid = ReadFile(base, ".git"); g.Invalid != nil {
			return g
		}
	case g.Kind != beneath.Dir:
		return g
	}
	g.Common = g.Dir
	at, err := beneath.Open(g.Dir)
	if err != nil {
		g.Gone = true
		return g
	}
	defer at.Close()
	if head, _ := at.Read("HEAD", pathLimit); strings.HasPrefix(string(head), "ref: refs/heads/") {
		g.Branch = strings.TrimRight(string(head[len("ref: refs/heads/"):]), "\r\n")
	}
	if g.Kind == beneath.Regular {
		g.Common, g.NoCommon = commonOf(at)
	}
	if g.Asked = g.NoCommon == nil && asked(g.Common); g.Asked {
		var st unix.Stat_t
		g.Unseen, g.IsFolder = unix.Lstat(g.Common, &st), IsFolder(g.Common)
		g.Owner = int(st.Uid)
		if g.Kind == beneath.Regular {
			g.Back, g.NoBack = backOf(at, g.Common)
		}
	}
	return g
}

// ReadFile reads the path in a .git file, which rel names below base; the results are those of [Resolve].
func ReadFile(base *beneath.Folder, rel string) (written, real string, err error) {
	content, err := base.Read(rel, pathLimit)
	if err != nil {
		return "", "", err
	}
	text, ok := strings.CutPrefix(string(content), "gitdir: ")
	if !ok {
		return "", "", errors.New("it does not begin with \"gitdir: \"")
	}
	return Resolve(filepath.Dir(base.Join(rel)), text)
}

// Resolve interprets a path as git does that reads it in a file in folder. written is the absolute path, links
// included; real has them resolved.
func Resolve(folder, text string) (written, real string, err error) {
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

// commonOf returns the common folder of a git folder. Git makes a linked worktree's git folder at
// <common>/worktrees/<name>; any other commondir may be an attempt to have another folder taken for it.
func commonOf(dir *beneath.Folder) (common string, err error) {
	content, err := dir.Read("commondir", pathLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return dir.Path(), nil
	}
	if err == nil {
		_, common, err = Resolve(dir.Path(), string(content))
	}
	if err == nil && common != dir.Path() && common+"/worktrees" != filepath.Dir(dir.Path()) {
		err = fmt.Errorf("its commondir names %s, where git would not put it", common)
	}
	return common, err
}

// LedBy returns the .git file, or the working tree, that a git folder says leads to it; empty: it says none.
func LedBy(dir string) string {
	folder, err := beneath.Open(dir)
	if err != nil {
		return ""
	}
	defer folder.Close()
	common, err := commonOf(folder)
	if err != nil {
		return ""
	}
	back, _ := backOf(folder, common)
	return back
}

// backOf returns what a git folder names as its own: the .git of a linked worktree, by its gitdir file, or the working
// tree of a submodule or separate git folder, by core.worktree. It is empty if that is not there.
func backOf(dir *beneath.Folder, common string) (back string, err error) {
	if common != dir.Path() {
		content, err := dir.Read("gitdir", pathLimit)
		if err == nil {
			_, back, _ = Resolve(dir.Path(), string(content))
		}
		return back, err
	}
	content, err := dir.Read("config", textLimit)
	if err == nil {
		entries, _ := gitconfig.Parse(content)
		_, back, _ = Resolve(dir.Path(), gitconfig.Last(entries, "core.worktree"))
	}
	return back, err
}
