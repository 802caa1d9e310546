package handover

import (
	"cmp"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/diag/pattern"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
)

// Adopting makes a checkout or a submodule that the agent has added one of the user's: the user's git folder gets a
// part for it, as git would make it, and what the agent has there crosses as everywhere.

// partName is a name that git gives to a worktree, or a submodule has.
const partName pattern.Expr = `^[A-Za-z0-9_][A-Za-z0-9_./+-]*$`

// mostMade is how many are adopted in one session.
const mostMade = 200

// listMade prints the worktrees and submodules of an inner folder: name, NUL, where its working tree is, NUL.
const listMade = `set +f; unset GIT_DIR
shopt -s globstar nullglob
cd "$C" || exit 1
for f in worktrees/*/gitdir; do
  if [ -f "$f" ]; then n=${f%/gitdir}; printf '%s\0%s\0' "$n" "$(head -c 5000 "$f")"; fi
done
for f in modules/**/HEAD; do
  n=${f%/HEAD}
  case $n in */refs/*|*/logs|*/logs/*) continue;; esac
  printf '%s\0%s\0' "$n" "$(g config --file "$n/config" core.worktree)"
done
`

// adopt adopts what the agent has made in a place, as far as it lies in a working tree that it was given. It returns
// remarks on what was adopted, and what could not be.
func (l *live) adopt() (remarks []Remark, err error) {
	answer, err := l.inner().run(prelude+listMade, "", false)
	if err != nil {
		return nil, err
	}
	return l.adoptParts(string(answer)), nil
}

// adoptParts is [live.adopt] for what [listMade] printed.
func (l *live) adoptParts(made string) (remarks []Remark) {
	p := l.place
	fields := strings.Split(made, "\x00")
	for n := 0; n+1 < len(fields) && n < 2*mostMade; n += 2 {
		part, where := fields[n], fields[n+1]
		at := p.Outer + "/" + part
		if _, known := os.Lstat(at); known == nil || !partName.Matches(part) || path.Clean(part) != part {
			continue
		}
		inside := cmp.Or(l.made.Inside, p.Outer) + "/" + part
		if !path.IsAbs(where) {
			where = inside + "/" + where
		}
		tree := path.Clean(where)
		worktree := path.Dir(part) == "worktrees"
		if worktree {
			tree = path.Dir(tree)
		}
		if worktree && !p.gave(tree) {
			remarks = append(remarks, Remark{tree, "its worktree " + tree + " was inside only, and is gone with what " +
				"was not committed; `worktrees` in a profile keeps such a folder", false})
		}
		if !p.gave(tree) || !l.pointsTo(tree, inside) {
			continue
		}
		adopt, what := l.adoptModule, "submodule"
		if worktree {
			adopt, what = l.adoptTree, "worktree"
		}
		fault := adopt(part, tree)
		if fault == nil {
			fault = l.point(tree, at)
		}
		if fault != nil {
			l.setAside(tree)
			remarks = append(remarks,
				Remark{tree, "the " + what + " is the agent's alone: " + fault.Error(), false})
			continue
		}
		remarks = append(remarks, Remark{tree, "a " + what + " that was made inside; it is yours now", false})
	}
	return remarks
}

// gave reports whether a path lies in a working tree of the place.
func (p Place) gave(tree string) bool {
	return slices.ContainsFunc(p.Trees, func(t Tree) bool { return tree != t.Path && pathname.Below(tree, t.Path) })
}

// setAside takes the .git file of a working tree out of git's way: it leads nowhere outside, where git would stop. One
// that is held back comes out so.
func (l *live) setAside(tree string) {
	if folder, name, err := l.dotGit(tree); err == nil { // else git cannot come there either
		defer folder.Close()
		if name == ".git" {
			_ = folder.Rename(name, ".git.claudebox-aside") // else git says where it leads
		}
	}
}

// dotGit opens the folder in which the .git file of a working tree is, and returns its name there. It follows no link,
// but for one of claudebox's own: the file is held back.
func (l *live) dotGit(tree string) (folder *beneath.Folder, name string, err error) {
	if folder, err = beneath.Open(tree); err != nil {
		return nil, "", err
	}
	text, none := folder.Readlink(".git")
	rel, held := pathname.Cut(path.Clean(text), l.made.Held.Destination)
	if none != nil || !held || l.made.Held.Destination == "" {
		return folder, ".git", nil
	}
	folder.Close()
	at := l.made.Held.Source + "/" + rel
	folder, err = beneath.Open(path.Dir(at))
	return folder, path.Base(at), err
}

// pointsTo reports whether the .git file of a working tree leads to a git folder, and nowhere else.
func (l *live) pointsTo(tree, to string) bool {
	folder, name, err := l.dotGit(tree)
	if err != nil {
		return false
	}
	defer folder.Close()
	const limit = 5000
	content, err := folder.Read(name, limit)
	text, is := strings.CutPrefix(string(content), "gitdir: ")
	text = strings.TrimSuffix(text, "\n")
	if !path.IsAbs(text) {
		text = tree + "/" + text
	}
	return err == nil && is && path.Clean(text) == to
}

// point has the .git file of a working tree lead to a git folder, if it led to where that was while it was held back.
func (l *live) point(tree, to string) error {
	if l.made.Inside == "" {
		return nil
	}
	folder, name, err := l.dotGit(tree)
	if err != nil {
		return err
	}
	defer folder.Close()
	rel, err := filepath.Rel(tree, to)
	if err != nil {
		return err
	}
	return folder.Replace(name, []byte("gitdir: "+rel+"\n"), 0o644)
}

// adoptTree makes the user's part of a worktree. Its HEAD is the agent's, whose branch has crossed; the rest crosses
// then. The place is locked.
func (l *live) adoptTree(rel, tree string) (err error) {
	p := l.place
	p.Trees = []Tree{{rel, tree}}
	inner, outer := l.inner(), l.outer()
	inner.place, outer.place = p, p
	in, ofIn := inner.read()
	out, ofOut := outer.read()
	if err := errors.Join(ofOut, ofIn); err != nil {
		return err
	}
	head := in.Trees[rel].Head
	commit := head
	if ref, isBranch := strings.CutPrefix(head, "ref: "); isBranch {
		commit = out.Refs[ref]
	}
	if commit == "" {
		return errors.New("its commit did not cross")
	}
	if _, have := newTips(p, Side{}, in, out); !slices.Contains(have, commit) { // it is on no branch
		if err := fetch(l.inner(), l.outer(), []string{commit}, have); err != nil {
			return err
		}
		if err := l.outer().isWhole([]string{commit}, have); err != nil {
			return err
		}
	}
	if err := l.layTree(rel, head, tree); err != nil {
		return err
	}
	l.place.Trees = append(slices.Clone(l.place.Trees), p.Trees...)
	m, err := l.place.recall()
	if err != nil {
		return err
	}
	m.Common.Trees[rel] = State{Head: head}
	if err := l.place.remember(m); err != nil {
		return err
	}
	if _, err := l.inner().run(prelude+l.place.preparations(), "", true); err != nil {
		return err
	}
	f := l.facts()
	f.final = true
	return l.settle(f)
}

// layTree makes the git folder of a worktree, and puts it in its place.
func (l *live) layTree(rel, head, tree string) error {
	parent, err := folderOf(l.place.Outer, rel)
	if err != nil {
		return err
	}
	defer parent.Close()
	made := l.place.Folder + "/" + fresh
	if err := cmp.Or(os.RemoveAll(made), os.MkdirAll(made, 0o700), os.Mkdir(made+"/tree", 0o755)); err != nil {
		return err
	}
	defer os.RemoveAll(made)
	for name, text := range map[string]string{"commondir": "../..\n", "gitdir": tree + "/.git\n", "HEAD": head + "\n"} {
		if err := os.WriteFile(made+"/tree/"+name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	_, err = moveIn(made+"/tree", parent, path.Base(rel))
	return err
}

// folderOf opens the folder of the user's that a part of a git folder is to be in. It makes it if need be.
func folderOf(outer, rel string) (*beneath.Folder, error) {
	root, err := beneath.Open(outer)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	dir := path.Dir(rel)
	for n := range len(dir) {
		if dir[n] == '/' {
			_ = root.Mkdir(dir[:n], 0o755) // most are there
		}
	}
	_ = root.Mkdir(dir, 0o755)
	return root.Sub(dir)
}

// adoptModule makes the user's git folder of a submodule.
func (l *live) adoptModule(rel, tree string) error {
	root, err := beneath.Open(l.place.Inner())
	if err != nil {
		return err
	}
	defer root.Close()
	part, err := root.Sub(rel) // on the way there is no link, and nothing runs inside that could make one
	if err != nil {
		return err
	}
	part.Close()
	parent, err := folderOf(l.place.Outer, rel)
	if err != nil {
		return err
	}
	defer parent.Close()
	outer := l.place.Outer + "/" + rel
	m := Made{
		Outer: outer, At: root.Join(rel), Folder: path.Dir(l.place.Folder) + "/" + Name(outer), Held: l.made.Held,
	}
	if l.made.Inside != "" {
		m.Inside = l.made.Inside + "/" + rel
	}
	a := m.adopting(Request{Tools: l.tools, Places: l.others}, parent, tree)
	a.hidden, a.held = l.hidden, l.held
	told, err := a.adopt()
	if err != nil {
		return err
	}
	l.remarks = append(l.remarks, told...)
	if m.Inside != "" { // from which its settings lead to the working tree
		script := prelude + "g config --file \"$C/config\" core.worktree " + diag.Quote(tree) + "\n"
		if _, err := a.inner().run(script, "", true); err != nil {
			return err
		}
	}
	name := strings.TrimPrefix(rel, "modules/")
	_, err = l.outer().run(prelude+`g config --file "$C/config" `+diag.Quote("submodule."+name+".active")+" true", "", true)
	return err
}
