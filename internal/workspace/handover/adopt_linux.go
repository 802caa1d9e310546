package handover

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

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
const listMade = prelude + `set +f
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
	p := l.place
	answer, err := l.inner().run(listMade, "", false)
	if err != nil {
		return nil, err
	}
	fields := strings.Split(string(answer), "\x00")
	for n := 0; n+1 < len(fields) && n < 2*mostMade; n += 2 {
		part, where := fields[n], fields[n+1]
		at := p.Outer + "/" + part
		if _, known := os.Lstat(at); known == nil || !partName.Matches(part) || path.Clean(part) != part {
			continue
		}
		if !path.IsAbs(where) {
			where = at + "/" + where
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
		if !p.gave(tree) || !pointsTo(tree, at) {
			continue
		}
		adopt, what := l.adoptModule, "submodule"
		if worktree {
			adopt, what = l.adoptTree, "worktree"
		}
		if fault := adopt(part, tree); fault != nil {
			setAside(tree)
			remarks = append(remarks,
				Remark{tree, "the " + what + " is the agent's alone: " + fault.Error(), false})
			continue
		}
		remarks = append(remarks, Remark{tree, "a " + what + " that was made inside; it is yours now", false})
	}
	return remarks, nil
}

// gave reports whether a path lies in a working tree of the place.
func (p Place) gave(tree string) bool {
	return slices.ContainsFunc(p.Trees, func(t Tree) bool { return tree != t.Path && pathname.Below(tree, t.Path) })
}

// setAside takes the .git file of a working tree out of git's way: it leads nowhere outside, where git would stop.
func setAside(tree string) {
	folder, err := beneath.Open(tree)
	if err != nil {
		return // then git cannot come there either
	}
	defer folder.Close()
	_ = folder.Rename(".git", ".git.claudebox-aside") // else git says where it leads
}

// pointsTo reports whether the .git file of a working tree leads to a git folder, and nowhere else. It follows no link.
func pointsTo(tree, to string) bool {
	folder, err := beneath.Open(tree)
	if err != nil {
		return false
	}
	defer folder.Close()
	const limit = 5000
	content, err := folder.Read(".git", limit)
	text, is := strings.CutPrefix(string(content), "gitdir: ")
	text = strings.TrimSuffix(text, "\n")
	if !path.IsAbs(text) {
		text = tree + "/" + text
	}
	return err == nil && is && path.Clean(text) == to
}

// adoptTree makes the user's part of a worktree. Its HEAD is the agent's, whose branch has crossed; the rest crosses
// then. The place is locked.
func (l *live) adoptTree(rel, tree string) (err error) {
	p := l.place
	p.Trees = []Tree{{rel, tree}}
	in, ofIn := innerOf(p, l.tools).read()
	out, ofOut := l.outer().read()
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
	if err := os.MkdirAll(p.Outer+"/worktrees", 0o755); err != nil {
		return err
	}
	at := p.Outer + "/" + rel
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	for name, text := range map[string]string{"commondir": "../..\n", "gitdir": tree + "/.git\n", "HEAD": head + "\n"} {
		if err := os.WriteFile(at+"/"+name, []byte(text), 0o644); err != nil {
			return errors.Join(err, os.RemoveAll(at))
		}
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

// adoptModule makes the user's git folder of a submodule.
func (l *live) adoptModule(rel, tree string) error {
	outer := l.place.Outer + "/" + rel
	p := Place{Outer: outer, Folder: path.Dir(l.place.Folder) + "/" + Name(outer), Trees: []Tree{{".", tree}}}
	module := &live{place: p, tools: l.tools, hidden: l.hidden, held: l.held}
	settings := `g config --file "$C/config" core.worktree ` + diag.Quote(tree)
	if err := module.take(settings, func(to string) error { return l.place.moveOut(rel, to) }); err != nil {
		return err
	}
	name := strings.TrimPrefix(rel, "modules/")
	_, err := l.outer().run(prelude+`g config --file "$C/config" `+diag.Quote("submodule."+name+".active")+" true", "", true)
	return err
}

// take makes a git folder of the user's for one that the agent has made: an empty one by the user's git. moveIn moves
// the agent's own to where it is the inner folder of a place, from which all crosses then. settings is a command for
// the new one. If the agent's own does not come, nothing is left.
func (l *live) take(settings string, moveIn func(to string) error) error {
	p := l.place
	if err := os.MkdirAll(l.outer().workTree(), 0o700); err != nil {
		return err
	}
	script := prelude + `unset GIT_WORK_TREE
g init -q --template= --initial-branch=main --bare "$C" && g config --file "$C/config" core.bare false && ` +
		settings + " || exit 1\n"
	if _, err := l.outer().run(script, "", true); err != nil {
		return err
	}
	if _, err := os.Lstat(p.Inner()); err == nil { // of a repository that was there once
		if err := p.forget(); err != nil {
			return err
		}
	}
	if err := moveIn(p.Inner()); err != nil {
		return errors.Join(err, os.RemoveAll(p.Outer))
	}
	// A clone without its whole history says where that ends.
	refer := fmt.Sprintf("mkdir -p \"$C/objects/info\" && echo %s >\"$C/objects/info/alternates\" || exit 1\n"+
		"if [ -f \"$C/shallow\" ]; then head -c %d \"$C/shallow\"; fi\n",
		diag.Quote(p.Shared()+"/objects"), configLimit)
	ends, err := l.inner().run(prelude+refer, "", true)
	if err != nil {
		return err
	}
	none := func(o string) bool { return !isObject(o) }
	if list := lines(string(ends)); len(list) > 0 && !slices.ContainsFunc(list, none) {
		if err := os.WriteFile(p.Outer+"/shallow", []byte(ended(list)), 0o644); err != nil {
			return err
		}
	}
	start, err := l.outer().read()
	if err != nil {
		return err
	}
	start.Refs, start.Trees = map[string]string{}, map[string]State{".": {Head: start.Trees["."].Head}}
	if err := p.remember(memory{Identity: p.identity(), Common: start, Settings: p.settings()}); err != nil {
		return err
	}
	f := l.facts()
	f.final = true
	return l.sync(f)
}

// Made is a repository that the agent has made in a working tree, and that was held back.
type Made struct {
	Outer  string // its git folder, as it is to be; nothing is there
	At     string // where it is; on the file system of Folder
	Folder string // the folder of the place that it becomes
}

// Adopt makes such a repository one of the user's: a fresh git folder by the user's git, in which what the agent has
// crosses. The places of r are those that it may borrow from. On an error the agent's own is where it was, and nothing
// where it was to be.
func Adopt(r Request, m Made) (list []Told, err error) {
	l := &live{
		place: Place{Outer: m.Outer, Folder: m.Folder, Trees: []Tree{{".", path.Dir(m.Outer)}}}, tools: r.Tools,
		hidden: under(r.Hidden), held: under(r.Held),
	}
	p := l.place
	if borrows(m.At) {
		if err := l.dissociate(m.At, r.Places); err != nil {
			return nil, fmt.Errorf("it borrows from another repository: %w", err)
		}
	}
	err = l.take(":", func(to string) error { return l.bring(m.At, to) })
	if err == nil && l.lacks() {
		err = errors.New("not all of it crossed")
	}
	if err == nil {
		var adopted []Remark
		adopted, err = l.adopt()
		l.remarks = append(l.remarks, adopted...)
	}
	if err == nil {
		err = l.takeSettings()
	}
	if err == nil {
		err = l.tellInside()
	}
	if err != nil {
		if inner, moved := beneath.Open(p.Inner()); moved == nil {
			_ = inner.Remove("objects/info/alternates") // which take has made
			inner.Close()
			if _, copied := os.Lstat(m.At); copied == nil {
				err = errors.Join(err, p.forget())
			} else {
				err = errors.Join(err, os.Rename(p.Inner(), m.At))
			}
		}
		return nil, errors.Join(err, os.RemoveAll(m.Outer))
	}
	_ = os.RemoveAll(m.At) // if it was copied
	for _, remark := range append(l.events, l.remarks...) {
		list = append(list, Told{m.Outer, remark})
	}
	return list, nil
}

// listInside prints the hooks and settings of an inner folder, NUL after each.
const listInside = prelude + `set +f
for h in "$C"/hooks/*; do case $h in *.sample) ;; *) [ -f "$h" ] && printf 'hooks/%s\0' "${h##*/}";; esac; done
g config --file "$C/config" --name-only --list -z --no-includes
`

// crossed are the beginnings of settings that every repository has, or that cross.
var crossed = []string{
	"core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "core.ignorecase",
	"core.precomposeunicode", "core.symlinks", "extensions.", "remote.", "branch.", "submodule.",
}

// tellInside tells which hooks and settings of a repository of the agent's the user's does not have.
func (l *live) tellInside() error {
	answer, err := l.inner().run(listInside, "", false)
	if err != nil {
		return err
	}
	var list []string
	for name := range strings.SplitSeq(strings.TrimSuffix(string(answer), "\x00"), "\x00") {
		if name != "" && !hasAny(name, crossed...) && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	if len(list) > 0 {
		const most = 5
		l.remarks = append(l.remarks, Remark{
			About: path.Dir(l.place.Outer), Text: "it is yours now; inside only: " + diag.Some(list, most),
		})
	}
	return nil
}

// borrows reports whether a git folder of the agent's names objects elsewhere.
func borrows(at string) bool {
	folder, err := beneath.Open(at)
	if err != nil {
		return true
	}
	defer folder.Close()
	what, err := folder.Look("objects/info/alternates")
	return err != nil || what.Kind != beneath.Absent
}

// dissociate gives a repository of the agent's, which is in a folder, all that it borrows from places.
func (l *live) dissociate(at string, places []Place) error {
	var bind []string
	for _, p := range places {
		bind = append(bind, p.Outer+"/objects", p.Shared()+"/objects")
		bind = append(bind, p.Inner()+"/objects", p.Outer+"/objects")
	}
	box := side{place: l.place, tools: l.tools, boxed: true, folder: at}
	script := prelude + inCommon + "g repack -a -d -q && rm -f \"$C/objects/info/alternates\"\n"
	if err := os.MkdirAll(l.place.Outer+"/objects", 0o700); err != nil { // which a box has, too
		return err
	}
	defer os.RemoveAll(l.place.Outer)
	_, err := box.run(script, "", true, bind...)
	return err
}

// bring moves a repository of the agent's, or copies it in a box to another file system: the next session goes on in
// it. The caller removes what was copied.
func (l *live) bring(from, to string) error {
	err := os.Rename(from, to)
	if !errors.Is(err, unix.EXDEV) {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	const there = "/run/claudebox/from"
	_, err = l.inner().run(prelude+"cp -RT --preserve=mode,timestamps,links "+there+" \"$C\"\n", "", true, from, there)
	return err
}

// lacks reports whether a branch that the agent has is not one of the user's.
func (l *live) lacks() bool {
	in, err := l.inner().read()
	out, fault := l.outer().read()
	if err != nil || fault != nil {
		return true
	}
	for name, commit := range in.Refs {
		if strings.HasPrefix(name, "refs/heads/") && out.Refs[name] != commit {
			return true
		}
	}
	return false
}

// moveOut moves a part of the inner folder, on the way to which there is no link, elsewhere.
func (p Place) moveOut(rel, to string) error {
	root, err := beneath.Open(p.Inner())
	if err != nil {
		return err
	}
	defer root.Close()
	part, err := root.Sub(rel)
	if err != nil {
		return err
	}
	part.Close()
	return os.Rename(p.Inner()+"/"+rel, to) // nothing runs inside that could exchange it
}
