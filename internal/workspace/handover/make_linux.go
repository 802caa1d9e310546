package handover

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/identity"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/workspace/gitconfig"
)

// configLimit is how large a configuration may be, in bytes.
const configLimit = 1 << 20

// copied are the names of a git folder that an inner one begins with. All are the user's. The references come in the
// order in which git reads them: it packs one before it removes its file.
var copied = []string{
	"shallow", "description", "info", "hooks", "logs/refs/stash", "refs", "packed-refs", "reftable",
}

// copiedOfTree are those of the git folder of one checkout.
var copiedOfTree = slices.Concat([]string{
	"HEAD", "reftable", "index", "commondir", "gitdir", "ORIG_HEAD", "info/sparse-checkout",
	"BISECT_START", "BISECT_NAMES", "BISECT_TERMS", "BISECT_EXPECTED_REV",
}, underWay, stateNames())

// create makes the inner folder of a place: a repository as the user's is now. It is made beside and renamed, so it is
// there whole or not at all. Nothing of the agent's is in it yet, so this process may write it.
func (p Place) create(hide func(at string) bool) error {
	hidden := func(at string) bool {
		return hide(at) || slices.ContainsFunc(p.Secrets, func(name string) bool { return at == p.Outer+"/"+name })
	}
	if err := os.MkdirAll(p.Folder, 0o700); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(p.Folder, "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	folders := []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "hooks", "info"}
	for _, dir := range append(folders, p.points()...) {
		if err := os.MkdirAll(fresh+"/"+dir, 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(fresh+"/"+alternates, p.borrowed(), 0o600); err != nil {
		return err
	}
	rels := p.rels()
	// Settings first: what is there is not copied again, and no link is there yet that a write could follow.
	settings := []string{"config"}
	for _, rel := range rels {
		settings = append(settings, path.Join(rel, "config.worktree"))
	}
	for _, name := range settings {
		if err := p.copySettings(fresh, name, hide); err != nil {
			return err
		}
	}
	names, ofTree := slices.Clone(copied), copiedOfTree
	if p.Branch != "" {
		ofTree = []string{"HEAD"} // without which it is no repository; then it is on Branch
	}
	for _, rel := range rels {
		if err := os.MkdirAll(path.Join(fresh, rel), 0o700); err != nil {
			return err
		}
		for _, name := range slices.Concat(ofTree, p.splitFrom(rel)) {
			names = append(names, path.Join(rel, name))
		}
		if rel != "." {
			if err := os.WriteFile(path.Join(fresh, rel, "locked"), []byte(lockReason), 0o600); err != nil {
				return err
			}
		}
	}
	for _, name := range names {
		if err := copyTree(p.Outer+"/"+name, fresh+"/"+name, hidden); err != nil {
			return err
		}
	}
	if err := p.passOver(fresh + "/" + excludeFile); err != nil {
		return err
	}
	return os.Rename(fresh, p.Inner())
}

// passOver adds [Place.Passed] to a file.
func (p Place) passOver(file string) error {
	if len(p.Passed) == 0 {
		return nil
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("\n" + ended(p.Passed))
	return errors.Join(err, f.Close())
}

// splitFrom are the names of the files that the index of a checkout may be split from: without them it cannot be read.
func (p Place) splitFrom(rel string) (names []string) {
	dir, err := os.Open(path.Join(p.Outer, rel))
	if err != nil || p.Branch != "" {
		return nil
	}
	defer dir.Close()
	all, _ := dir.Readdirnames(-1)
	return slices.DeleteFunc(all, func(name string) bool { return !strings.HasPrefix(name, "sharedindex.") })
}

// rels are the checkouts of the user's that the inner folder begins with.
func (p Place) rels() []string {
	rels := []string{"."}
	if p.Branch != "" {
		return rels
	}
	linked, _ := os.ReadDir(p.Outer + "/worktrees")
	for _, e := range linked {
		if e.IsDir() {
			rels = append(rels, "worktrees/"+e.Name())
		}
	}
	return rels
}

// lockReason is what git inside says when it is to remove a worktree of the user's: it would do so by half.
const lockReason = "claudebox protects what was there before this session; remove it outside the sandbox"

// copySettings copies a configuration without secrets, and without what cannot work inside; and those in the git folder
// that it includes, which may include each other.
func (p Place) copySettings(fresh, name string, hide func(at string) bool) error {
	if _, err := os.Lstat(fresh + "/" + name); err == nil {
		return nil
	}
	content, err := smallfile.Read(p.Outer+"/"+name, configLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.MkdirAll(path.Dir(fresh+"/"+name), 0o700)
	}
	if err == nil {
		err = os.WriteFile(fresh+"/"+name, gitconfig.Sanitise(content, p.usersAlone()...), 0o600)
	}
	if err != nil {
		return err
	}
	entries, _ := gitconfig.Parse(content)
	for _, e := range entries {
		at := gitconfig.Path(path.Dir(p.Outer+"/"+name), e.Value, "")
		rel, in := pathname.Cut(at, p.Outer)
		if !gitconfig.IsInclude(e) || !in || rel == "" || hide(at) {
			continue
		}
		if err := p.copySettings(fresh, rel, hide); err != nil {
			return err
		}
	}
	return nil
}

// copyTree copies a file, a link as it is, or a folder with all in it. What is hidden, or none of these, is left out,
// and so is what is there already.
func copyTree(from, to string, hidden func(at string) bool) error {
	info, err := os.Lstat(from)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && hidden(from):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		if err := os.MkdirAll(to, 0o700); err != nil {
			return err
		}
		entries, err := os.ReadDir(from)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".lock") {
				continue
			}
			if err := copyTree(from+"/"+e.Name(), to+"/"+e.Name(), hidden); err != nil {
				return err
			}
		}
		return nil
	}
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		text, err := os.Readlink(from)
		if err == nil {
			err = os.Symlink(text, to)
		}
		return err
	case !info.Mode().IsRegular():
		return nil
	}
	if err := os.MkdirAll(path.Dir(to), 0o700); err != nil {
		return err
	}
	if err := endless(from, false, info.Size(), mostCopied); err != nil {
		return fmt.Errorf("%w: move it away", err)
	}
	content, err := smallfile.Read(from, mostCopied)
	if err == nil {
		err = os.WriteFile(to, content, info.Mode().Perm()|0o600)
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, smallfile.ErrNotRegular) {
		return nil // git cannot read it outside either
	}
	return err
}

// mostCopied is how large a file of a git folder may be that is copied, in bytes.
const mostCopied = 1 << 30

// hasPoints reports whether all mount points are there, and no link is on the way to one.
func (p Place) hasPoints() bool {
	inner, err := beneath.Open(p.Inner())
	if err != nil {
		return false
	}
	defer inner.Close()
	return !slices.ContainsFunc(append(p.points(), "objects/info"), func(rel string) bool {
		point, err := inner.Sub(rel)
		if err == nil {
			point.Close()
		}
		return err != nil
	})
}

// preparations returns a script for the box that makes what an inner folder lacks: mount points, and checkouts that the
// user has made since. It ends with [errLost] if the folder is not the one that was made.
func (p Place) preparations() string {
	var b strings.Builder
	b.WriteString(sameScript(p) + unexclude)
	for _, pattern := range p.Passed {
		fmt.Fprintf(&b, passScript, diag.Quote(pattern), configLimit, excludeFile)
	}
	for _, rel := range p.points() {
		fmt.Fprintf(&b, "mkdir -p \"$C\"/%s || exit 1\n", diag.Quote(rel))
	}
	for _, t := range p.Trees {
		if t.Rel == "." {
			continue
		}
		at := diag.Quote(p.dir(t))
		fmt.Fprintf(&b, `if [ ! -e %[1]s/HEAD ]; then mkdir -p %[1]s && echo ../.. >%[1]s/commondir && echo %[2]s >%[1]s/gitdir &&
none=$(GIT_DIR=$C g hash-object --stdin </dev/null) && echo "${none//?/0}" >%[1]s/HEAD || exit 1; fi
if [ ! -e %[1]s/locked ]; then echo %[3]s >%[1]s/locked || exit 1; fi
[ ! -d "$C/reftable" ] || mkdir -p %[1]s/reftable
`, at, diag.Quote(t.Path+"/.git"), diag.Quote(lockReason))
	}
	return b.String()
}

// passScript adds a pattern to the file of those that git ignores, where it is not there.
const passScript = `p=%[1]s t=; [ ! -f "$C/%[3]s" ] || t=$(head -c %[2]d "$C/%[3]s")
case $'\n'$t$'\n' in *$'\n'"$p"$'\n'*) ;; *) mkdir -p "$C/info" && printf '\n%%s\n' "$p" >>"$C/%[3]s" || exit 1;; esac
`

// mostAlternates is how many folders of objects a repository may borrow from.
const mostAlternates = 50

// Borrows are the folders of objects of other repositories that the user's one borrows from, and those borrow from.
func (p Place) Borrows() (list []string) {
	all := []string{p.Outer + "/objects"}
	for n := 0; n < len(all) && n <= mostAlternates; n++ {
		content, _ := smallfile.Read(all[n]+"/info/alternates", configLimit) // most have none
		for _, line := range lines(string(content)) {
			if !path.IsAbs(line) {
				line = all[n] + "/" + line
			}
			if line = path.Clean(line); !slices.Contains(all, line) {
				all = append(all, line)
			}
		}
	}
	return all[1:]
}

// identity tells a git folder from another one that was made at the same path later.
func (p Place) identity() string { return string(identity.At(unix.AT_FDCWD, p.Outer+"/objects")) }

// stamps are the states of all files and folders of a git folder that change when something could cross, read without
// opening any.
func (p Place) stamps(root string) string {
	var list []string
	look := func(name string) {
		if info, err := os.Lstat(name); err == nil {
			list = append(list,
				fmt.Sprint(name[len(root):], inode(info), info.ModTime().UnixNano(), info.Size(), info.Mode()))
		}
	}
	for _, t := range p.treesOf(root == p.Outer) {
		for _, name := range slices.Concat([]string{"HEAD", "index"}, underWay, stateNames()) {
			look(path.Join(root, t.Rel, name))
		}
	}
	for _, name := range []string{
		"packed-refs", "config", "logs/refs/stash", "shallow", "objects/info/alternates", "worktrees", "modules",
		excludeFile,
	} {
		if p.Branch == "" || name != "worktrees" && name != "modules" { // which do not cross
			look(root + "/" + name)
		}
	}
	for _, dir := range p.folders(root) {
		look(dir)
	}
	return strings.Join(list, "\n")
}

// mostFolders is how many folders of references are watched.
const mostFolders = 2000

// folders lists the folders of references: each is written to when a reference in it changes. No link is followed.
// Where they are in tables, HEAD of a checkout is in such a folder of its own.
func (p Place) folders(root string) (list []string) {
	tops := []string{"refs", "reftable"}
	for _, t := range p.Trees {
		if t.Rel != "." {
			tops = append(tops, t.Rel+"/reftable")
		}
	}
	for _, top := range tops {
		_ = filepath.WalkDir(root+"/"+top, func(name string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return fs.SkipDir
			case !e.IsDir():
				return nil
			case len(list) >= mostFolders:
				return fs.SkipAll
			}
			list = append(list, name)
			return nil
		})
	}
	return list
}
