package handover

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/diag/pattern"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/guard"
)

// A part is a checkout or a submodule that the agent has added to a repository. Adopting it makes it one of the user's:
// the user's git folder gets a part for it, as git would make it, and what the agent has there crosses as everywhere.

// partName is a name that git gives to a worktree, or a submodule has.
const partName pattern.Expr = `^[A-Za-z0-9_][A-Za-z0-9_./+-]*$`

// mostMade is how many are adopted in one session.
const mostMade = 200

// listMade prints the worktrees and submodules of an inner folder: name, NUL, where its working tree is, NUL. If the
// folder was held back, it first writes that down anew where it is a way up to $top, and on from there: it begins where
// the folder was.
const listMade = `set +f; unset GIT_DIR
shopt -s globstar nullglob
cd "$C" || exit 1
anew() {
  [ "$top" ] && [ "$w" != "${w#../}" ] || return
  while [ "$w" != "${w#../}" ]; do w=${w#../}; done
  w=$top$w
}
for f in worktrees/*/gitdir; do
  if [ -f "$f" ]; then
    w=$(head -c 5000 "$f")
    if anew; then printf '%s\n' "$w" >"$f" || exit 1; fi
    printf '%s\0%s\0' "${f%/gitdir}" "$w"
  fi
done
for f in modules/**/HEAD; do
  n=${f%/HEAD}
  case $n in */refs/*|*/logs|*/logs/*) continue;; esac
  w=$(g config --file "$n/config" core.worktree)
  if anew; then g config --file "$n/config" core.worktree "$w" || exit 1; fi
  printf '%s\0%s\0' "$n" "$w"
done
`

// addition is one of them.
type addition struct {
	rel  string // its git folder, in that of the repository
	tree string // its working tree
}

func (a addition) isTree() bool { return path.Dir(a.rel) == "worktrees" }

// additions are those of one repository, which is the user's and in its place.
type additions struct {
	Request
	place   Place // with the checkouts that were adopted
	list    []addition
	remarks []Remark
}

// additionsTo reads what [listMade] printed, of parts that are to be adopted: they lie in a folder that the agent was
// given, where no other session lives.
func (r Request) additionsTo(p Place, made string) *additions {
	a := &additions{Request: r, place: p}
	fields := strings.Split(made, "\x00")
	for n := 0; n+1 < len(fields) && n < 2*mostMade; n += 2 {
		one, where := addition{rel: fields[n]}, fields[n+1]
		at := p.Outer + "/" + one.rel
		if _, known := os.Lstat(at); known == nil || !partName.Matches(one.rel) || path.Clean(one.rel) != one.rel {
			continue
		}
		if !path.IsAbs(where) {
			where = at + "/" + where
		}
		if one.tree = path.Clean(where); one.isTree() {
			one.tree = path.Dir(one.tree)
		}
		switch {
		case pathname.BelowAny(one.tree, r.Given):
			if r.Alone == nil || r.Alone(one.tree) {
				a.list = append(a.list, one)
			}
		case one.isTree() && !pathname.BelowAny(one.tree, r.Lasts):
			text := "its worktree " + one.tree + " was inside only, and is gone with what was not committed; " +
				"`worktrees` in a profile keeps such a folder"
			a.remarks = append(a.remarks, Remark{About: one.tree, Text: text})
		}
	}
	return a
}

// lead has the .git files of parts lead to the user's repository that lead to where it was while it was held back.
func (a *additions) lead(thing string) {
	for _, one := range a.list {
		if tree, err := beneath.Open(one.tree); err == nil && thing != "" {
			Lead(tree, ".git", func() map[string]string { return map[string]string{thing: a.place.Outer} })
			tree.Close()
		}
	}
}

// adopt adopts the worktrees, or the submodules, and returns how many. What is not adopted stays as it is: git outside
// stops at its .git file, and goes into no repository above.
func (a *additions) adopt(trees bool) (adopted int) {
	for _, one := range a.list {
		what, adopt := "submodule", a.module
		if trees {
			what, adopt = "worktree", a.tree
		}
		inOther := func(other addition) bool { return strings.HasPrefix(one.rel, other.rel+"/modules/") }
		if one.isTree() != trees || !leadsTo(one.tree, a.place.Outer+"/"+one.rel) ||
			slices.ContainsFunc(a.list, inOther) { // it is adopted with that
			continue
		}
		text := "a " + what + " that was made inside; it is yours now"
		if fault := adopt(one); fault != nil {
			text = "the " + what + " is the agent's alone, and the next session goes on in it: " + fault.Error()
		} else {
			adopted++
		}
		a.remarks = append(a.remarks, Remark{About: one.tree, Text: text})
	}
	return adopted
}

// leadsTo reports whether the .git file of a working tree leads to a git folder, and nowhere else.
func leadsTo(tree, to string) bool {
	folder, err := beneath.Open(tree)
	if err != nil {
		return false
	}
	defer folder.Close()
	const limit = 5000
	text, err := folder.Read(".git", limit)
	return err == nil && git.LeadsTo(tree+"/.git", string(text)) == to
}

// Lead has a .git file that leads to where a repository was while it was held back lead to where that is now. things
// are the paths of repositories that are the user's now, by [guard.Thing].
func Lead(root *beneath.Folder, rel string, things func() map[string]string) {
	name := guard.ThingOf(root, rel, root.Join(rel))
	if name == "" {
		return
	}
	for thing, outer := range things() {
		of, is := strings.CutPrefix(name, thing+"/")
		to, err := filepath.Rel(path.Dir(root.Join(rel)), outer+"/"+of)
		if is && err == nil && partName.Matches(of) {
			_ = root.Replace(rel, []byte("gitdir: "+to+"\n"), 0o644) // else it leads nowhere
		}
	}
}

// tree makes the user's part of a worktree. Its HEAD is the agent's, whose branch has crossed; the rest crosses with
// the next hand-over. The place is locked.
func (a *additions) tree(one addition) (err error) {
	p := a.place
	p.Trees = []Tree{{one.rel, one.tree}}
	inner, outer := innerOf(p, a.Tools), outerOf(p, a.Tools)
	in, ofIn := inner.read()
	out, ofOut := outer.read()
	if err := errors.Join(ofOut, ofIn); err != nil {
		return err
	}
	head := in.Trees[one.rel].Head
	commit := head
	ref, isBranch := strings.CutPrefix(head, "ref: ")
	if isBranch {
		commit = out.Refs[ref]
	}
	if _, have := newTips(p, Side{}, in, out); commit != "" && !slices.Contains(have, commit) { // it is on no branch
		if err := fetch(inner, outer, []string{commit}, have); err != nil {
			return err
		}
		if err := outer.isWhole([]string{commit}, have); err != nil {
			return err
		}
	} else if commit == "" && (!isBranch || in.Refs[ref] != "") {
		return fmt.Errorf("its branch %s did not cross", strings.TrimPrefix(ref, "refs/heads/"))
	}
	if err := p.layTree(one.rel, head, one.tree); err != nil {
		return err
	}
	if _, err := os.Lstat(p.Outer + "/reftable"); err == nil { // there no file says what HEAD is
		var set strings.Builder
		treeScript(&set, TreeChange{Tree: p.Trees[0], Head: head}, "")
		in := "export GIT_DIR=" + diag.Quote(p.dir(p.Trees[0])) + "\nmkdir -p \"$GIT_DIR/reftable\" || exit 1\n"
		if _, err := outer.run(prelude+in+set.String(), "", true); err != nil {
			return err
		}
	}
	p.Trees = append(slices.Clone(a.place.Trees), p.Trees...)
	m, err := p.recall()
	if err != nil {
		return err
	}
	m.Common.Trees[one.rel] = State{Head: head}
	if err := p.remember(m); err != nil {
		return err
	}
	a.place = p
	_, err = innerOf(p, a.Tools).run(prelude+p.preparations(), "", true)
	return err
}

// layTree makes the git folder of a worktree, and puts it in its place.
func (p Place) layTree(rel, head, tree string) error {
	parent, err := folderOf(p.Outer, rel)
	if err != nil {
		return err
	}
	defer parent.Close()
	made := p.Folder + "/" + fresh
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

// module makes the user's git folder of a submodule.
func (a *additions) module(one addition) error {
	root, err := beneath.Open(a.place.Inner())
	if err != nil {
		return err
	}
	defer root.Close()
	own, err := root.Sub(one.rel) // on the way there is no link, and nothing runs inside that could make one
	if err != nil {
		return err
	}
	own.Close()
	parent, err := folderOf(a.place.Outer, one.rel)
	if err != nil {
		return err
	}
	defer parent.Close()
	outer := a.place.Outer + "/" + one.rel
	m := Made{Outer: outer, At: root.Join(one.rel), Folder: path.Dir(a.place.Folder) + "/" + Name(outer)}
	told, err := m.adopting(a.Request, parent, one.tree).adopt()
	if err != nil {
		return err
	}
	a.remarks = append(a.remarks, in(one.tree, told)...)
	name := strings.TrimPrefix(one.rel, "modules/")
	script := prelude + `g config --file "$C/config" ` + diag.Quote("submodule."+name+".active") + " true"
	_, err = outerOf(a.place, a.Tools).run(script, "", true)
	return err
}
