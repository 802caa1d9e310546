package project

import (
	"errors"
	"path"
	"slices"
	"strings"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/handover"
	"claudebox/internal/workspace/hostrun"
)

const (
	// configLimit is how large a git configuration may be, in bytes.
	configLimit = 1 << 20
	// repoLimit is how many git folders are protected name by name; each costs
	// about five mounts. In those beyond it nothing can be changed inside.
	repoLimit = 100

	// Of the host's git; short, as the audit shows them beside paths.
	whyConfig    = "git runs what it names"
	whyHooks     = "git runs hooks"
	whyMoved     = "git finds its config by it"
	whySubmodule = "a submodule that is not checked out"
	whyOwn       = "the agent's own git folder"
	whyTracked   = "a repository among the files that git has"
	whyCheckout  = "a checkout that lies in its repository"
	whySecrets   = "there are secrets in it"
)

// gitFolder is a git folder, as it was seen before the session.
type gitFolder struct {
	below
	*git.Folder
	v    *view
	own  bool   // the project's own repository
	file bool   // it, or the one that it lies in, is among the files that git has, as those of tests are
	tree string // its working tree, where git starts programs
}

// gitFolders returns the git folders below one root: the project's own first, the others in an order in which each
// comes after the one that it lies in.
func (v *view) gitFolders(at below, seen git.Snapshot) (list []gitFolder) {
	for i := range seen.Folders {
		f := &seen.Folders[i]
		list = append(list, gitFolder{below: at, Folder: f, v: v, own: f.Path == v.repo.Common})
	}
	first := func(g gitFolder) string {
		if g.own {
			return ""
		}
		return g.Path
	}
	slices.SortFunc(list, func(a, b gitFolder) int { return strings.Compare(first(a), first(b)) })
	for i := range list {
		list[i].tree = list[i].checkout(seen.Files)
	}
	return list
}

// markFiles notes which git folders are among the files that git has.
func (v *view) markFiles() {
	files := map[string]bool{}
	for i := range v.folders {
		g := &v.folders[i]
		g.file = g.below == v.tree && (files[g.In] || g.isBare() && v.tracked.Has(g.rel("HEAD")))
		files[g.Rel] = g.file
	}
}

// isBare reports whether git takes the folder for a repository by what is in it alone.
func (g *gitFolder) isBare() bool {
	return !g.own && g.In == "" && !git.IsDotGit(path.Base(g.Path))
}

// checkout returns the working tree of a git folder, as its files say, or one called .git that leads to it.
func (g *gitFolder) checkout(dotGits []git.File) string {
	if g.Path == g.v.repo.Dir {
		return g.v.repo.Worktree
	}
	tree := gitconfig.Last(g.Entry("config").Settings(), "core.worktree")
	if text := g.Entry("gitdir").Text(); text != "" && g.Role == git.Linked {
		tree = path.Dir(strings.TrimRight(text, "\n"))
	}
	if tree == "" && g.isBare() {
		for _, f := range dotGits {
			if f.Leads() == g.Path {
				return path.Dir(f.Path)
			}
		}
		return g.Path // it has none
	}
	switch {
	case tree == "" || tree == "." && !g.isBare():
		return path.Dir(g.Path)
	case !path.IsAbs(tree):
		tree = g.Path + "/" + tree
	}
	return path.Clean(tree)
}

// rel returns the path below the root of a name in the folder.
func (g *gitFolder) rel(name string) string { return path.Join(g.Rel, name) }

// protect protects a git folder of a project, or of a folder mounted read-write beside it; one of too many as a whole.
// So is one among the files that git has: what git obeys in there has no name that could be held alone.
func (g *gitFolder) protect(tooMany bool) error {
	for _, name := range g.Closed {
		g.closed(g.rel(name))
	}
	switch {
	case !g.v.judged.Has(g.Path): // the agent of a session that lives may have made it
		if g.isBare() {
			g.secrets()
		}
		return nil
	case g.file && g.In != "":
		return nil
	case g.file:
		g.secrets()
		if !g.v.Lent {
			g.cover(g.Rel, Mount{Mode: ReadOnly, Dir: true, Why: whyTracked})
		}
		return nil
	}
	g.pin(g.Rel)
	odd := g.odd()
	if tooMany {
		odd = "there are too many git folders"
	}
	switch {
	case slices.Contains(g.Closed, "."):
		return nil
	case g.Path == g.v.repo.Dir && g.Role != git.Linked && g.isElsewhere():
		return unprotectable(g.Join(g.rel("commondir")),
			errors.New("it makes git take its configuration from elsewhere; remove it"), usualMend)
	case odd != "" && g.Rel == ".":
		return unprotectable(g.Path, errors.New(odd), usualMend)
	case odd != "":
		g.add(g.Rel, Mount{Mode: ReadOnly, Dir: true, Why: whyConfig})
		if !tooMany { // else there is one note on all
			g.note(true, "%s is read-only inside: %s", g.Path, said(odd))
		}
		g.secrets()
		return nil
	case g.v.Lent:
		g.secrets()
		return nil
	case g.Role == git.Linked, g.In != "" && !git.IsFolder(g.Path):
		return nil // it belongs to its repository
	case !git.IsFolder(g.Path): // git may take it for one when the agent has added what is missing
		g.add(g.Rel, Mount{Mode: ReadOnly, Dir: true, Why: whyConfig})
		g.secrets()
		return nil
	}
	g.replace()
	return nil
}

// replace gives the agent a git folder of its own in the place of this one, with the checkouts that the agent is given.
func (g *gitFolder) replace() {
	p := handover.Place{Outer: g.Path, Own: g.own}
	for _, s := range g.Secrets() {
		p.Secrets = append(p.Secrets, s.Name)
		g.instead = append(g.instead, Mount{
			Path: g.Join(g.rel(s.Name)), Mode: Made, Dir: s.Dir, Content: s.Copy, Why: whySecrets,
		})
	}
	if tree := g.tree; tree == g.v.repo.Worktree || g.v.given(tree) {
		p.Trees = append(p.Trees, handover.Tree{Rel: ".", Path: tree})
	}
	for _, other := range g.v.folders {
		rel, in := pathname.Cut(other.Path, g.Path)
		given := other.Path == g.v.repo.Dir || g.v.given(other.tree) && beneath.Exists(other.tree+"/.git")
		if in && given && other.Role == git.Linked && path.Dir(rel) == "worktrees" {
			p.Trees = append(p.Trees, handover.Tree{Rel: rel, Path: other.tree})
		}
	}
	if len(p.Trees) == 0 {
		p.Trees = []handover.Tree{{Rel: ".", Path: g.tree}}
	}
	if others := g.Foreign(); g.Role == git.Bare && len(others) > 0 {
		g.note(false, "%s is a repository: what is none of git's in it, as %s, is not inside, but for checkouts",
			g.Join(g.Rel), others[0])
	}
	for _, t := range p.Trees {
		if rel, in := pathname.Cut(t.Path, g.Path); in && rel != "" && g.below == g.v.tree {
			g.checkouts = append(g.checkouts, t.Path)
			g.cover(g.rel(rel), Mount{Mode: Pin, Dir: true, Why: whyCheckout})
		}
	}
	if g.below == g.v.tree {
		g.searched = append(g.searched, g.Rel)
	}
	g.inner = append(g.inner, p)
	g.cover(g.Rel, Mount{Mode: Inner, Dir: true, Why: whyOwn})
}

// ownSubmodules gives the agent folders of its own in the place of submodules that are not checked out: git goes into
// whatever the user's index names as one.
func (v *view) ownSubmodules() {
	for _, rel := range v.seen.Links {
		what, err := v.tree.Look(rel)
		dotGit, fault := v.tree.Look(path.Join(rel, ".git"))
		switch {
		case err != nil || v.mounts[v.tree.Join(rel)].Mode != "" && v.mounts[v.tree.Join(rel)].Mode != Pin:
		case what.Kind == beneath.Absent &&
			(isFolder(v.tree, path.Dir(rel)) || hostrun.IsFilled(rel) && v.standInAbove(rel)):
			v.tree.standIn(StandIn{Rel: rel, Dir: true}, whySubmodule)
			v.mounts[v.tree.Join(rel)] = Mount{
				Path: v.tree.Join(rel), Root: v.tree.Path(), Mode: Own, Dir: true, Why: whySubmodule,
			}
		case what.Kind == beneath.Dir && fault == nil && dotGit.Kind == beneath.Absent:
			v.tree.cover(rel, Mount{Mode: Own, Dir: true, Why: whySubmodule})
		}
	}
}

// standInAbove has the folders stand in that are not there on the way to a path, the upper ones first. It reports
// whether all are folders then.
func (v *view) standInAbove(rel string) bool {
	dir := path.Dir(rel)
	what, err := v.tree.Look(dir)
	if err != nil || what.Kind != beneath.Absent || !v.standInAbove(dir) {
		return err == nil && what.Kind == beneath.Dir
	}
	v.tree.standIns = append(v.tree.standIns, StandIn{Root: v.tree.Path(), Rel: dir, Dir: true})
	return true
}

func isFolder(at below, rel string) bool {
	what, err := at.Look(rel)
	return err == nil && what.Kind == beneath.Dir
}

// odd says why names in a git folder cannot be protected one by one: nothing can be mounted over a link. It is empty if
// they can.
func (g *gitFolder) odd() string {
	held := []string{"modules", "worktrees", "config", "objects"} // or have such ones in them
	for _, e := range g.Entries {
		if first, _, _ := strings.Cut(e.Name, "/"); e.Kind == beneath.Link && slices.Contains(held, first) {
			return e.Name + " is a link, which the agent could replace"
		}
	}
	switch {
	case g.Role != git.Linked && g.isElsewhere():
		return "its commondir makes git take its configuration from elsewhere"
	case g.isBare() && gitconfig.Last(g.Entry("config").Settings(), "core.worktree") != "" &&
		pathname.Below(g.Path, g.tree) && pathname.Below(g.tree, g.Path):
		return "it is its own working tree"
	case g.isBare() && slices.Contains(strings.Split(g.Rel, "/"), ".jj"):
		return "what jj keeps beside it would name commits that do not cross"
	}
	return ""
}

// samePlace is the text of a commondir that changes nothing: git finds everything in the folder that the file is in.
const samePlace = "./\n"

// isElsewhere reports whether a commondir names another place than the folder itself.
func (g *gitFolder) isElsewhere() bool {
	e := g.Entry("commondir")
	text := e.Text()
	return e != nil && (text != samePlace || e.Kind != beneath.Regular)
}

// secrets covers what is secret in a git folder, but neither what the profile shows nor what is tracked, such as the
// bare repositories of a test. One outside of the project does not enter.
func (g *gitFolder) secrets() {
	if g.below != g.v.tree {
		return
	}
	for _, s := range g.Secrets() {
		rel := g.rel(s.Name)
		switch {
		case g.v.shown(rel) || g.v.tracked.Has(rel) && (s.Dir || g.v.indexed(rel)):
			continue
		case s.Copy == nil:
			g.hide(rel, s.Dir, whyHidden)
		default:
			g.cover(rel, Mount{Mode: Made, Content: s.Copy, Why: whySecrets})
			g.copied = append(g.copied, rel)
			if s.Name == "FETCH_HEAD" || strings.HasPrefix(s.Name, "logs/") {
				g.note(true, "%s holds an address with a password: inside it is a copy without, which git cannot "+
					"write to; take the password out of the file", g.Join(rel))
			}
		}
		g.stay = append(g.stay, rel)
	}
	g.searched = append(g.searched, g.Rel)
}
