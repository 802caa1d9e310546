package project

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/placeholder"
)

const (
	// configLimit is what a git configuration may have, in bytes.
	configLimit = 1 << 20
	// smallLimit is what a file that holds one path or name may have, in bytes.
	smallLimit = 8 << 10
	// repoLimit is how many git folders are protected name by name; each costs
	// about five mounts. In those beyond it nothing can be changed inside.
	repoLimit = 100

	// Of the host's git; short, as the audit shows them beside paths.
	whyConfig = "git runs what it names"
	whyHooks  = "git runs hooks"
	whyMoved  = "git finds its config by it"
	whyTodo   = "git runs what it lists"
	whySecret = "there are secrets in it"
)

// gitFolder is a git folder, as it was seen before the session.
type gitFolder struct {
	guard
	*git.Folder
	own     bool   // the project's own repository
	guarded bool   // named .git, or in one: git runs what it names without being asked
	tree    string // its working tree, where git starts programs
}

// gitFolders are the git folders below one root, those that lie in others behind
// them, and the project's own before all.
func (o *opener) gitFolders(at *beneath.Folder, seen git.Snapshot) []gitFolder {
	var list []gitFolder
	for i := range seen.Folders {
		f := &seen.Folders[i]
		list = append(list, gitFolder{guard: guard{o, at}, Folder: f, own: f.Path == o.Repo.Common})
	}
	slices.SortFunc(list, func(a, b gitFolder) int {
		if a.own != b.own {
			return cmp.Compare(b2i(b.own), b2i(a.own))
		}
		return cmp.Compare(a.Path, b.Path)
	})
	guarded := map[string]bool{}
	for i := range list {
		g := &list[i]
		g.guarded = g.own || strings.EqualFold(path.Base(g.Path), ".git") || guarded[g.In()]
		guarded[g.Rel()], g.tree = g.guarded, g.checkout()
	}
	return list
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// checkout is the working tree of a git folder, as its files say.
func (g *gitFolder) checkout() string {
	if g.Path == g.o.Repo.Dir {
		return g.o.Repo.Worktree
	}
	tree := gitconfig.Last(g.settings("config"), "core.worktree")
	if back := g.Entry("gitdir"); back != nil && g.Role == git.Linked {
		text, _ := back.Text()
		tree = path.Dir(strings.TrimRight(text, "\n"))
	}
	switch {
	case tree == "" || tree == ".":
		return path.Dir(g.Path)
	case !path.IsAbs(tree):
		tree = g.Path + "/" + tree
	}
	return path.Clean(tree)
}

func (g *gitFolder) settings(name string) []gitconfig.Entry {
	if e := g.Entry(name); e != nil {
		return e.Settings()
	}
	return nil
}

// rel is where a name of the folder lies below the root.
func (g *gitFolder) rel(name string) string { return path.Join(g.Rel(), name) }

// protectGit protects git folders, and .git files, of a project or of a folder
// mounted read-write beside it. A folder that is a repository by what is in it
// (bare) is protected nowhere: most are tracked files of a test. It is looked at
// when the session has ended; only what is secret in its configuration stays out.
func (o *opener) protectGit(folders []gitFolder, files []git.File) error {
	for n := range folders {
		g := &folders[n]
		if err := g.protect(n >= repoLimit); err != nil {
			return err
		}
	}
	for i := range files {
		if err := (guard{o, o.tree}).existing(files[i].Rel(), whyMoved); err != nil {
			return err
		}
	}
	return nil
}

func (g *gitFolder) protect(tooMany bool) error {
	for _, name := range g.Closed {
		g.closed(g.rel(name))
	}
	if !g.guarded {
		return g.secrets()
	}
	g.pin(g.Rel(), whyConfig)
	odd := g.odd()
	if tooMany {
		odd = fmt.Sprintf("there are more than %d git folders", repoLimit)
	}
	switch {
	case slices.Contains(g.Closed, "."):
		return nil
	case odd != "" && g.Rel() == ".":
		return unprotectable(g.Path, odd)
	case odd != "":
		g.add(Mount{Mode: ReadOnly, Dir: true, Why: whyConfig}, g.Rel())
		g.o.note(true, fmt.Sprintf("%s is read-only inside: %s", g.Path, odd))
		return g.secrets()
	case g.Role == git.Linked:
		g.config("config.worktree", g.perWorktree())
		g.held("gitdir", whyMoved)
		g.held("commondir", whyMoved)
		g.lock()
	default:
		if err := g.commondir(); err != nil {
			return err
		}
		g.config("config", true)
		g.config("config.worktree", g.perWorktree())
		g.hooks()
	}
	if g.Path != g.o.Repo.Dir && !g.o.given(g.tree) {
		g.held("index", "it says what is tracked in another checkout")
	}
	if err := g.copies(); err != nil {
		return err
	}
	for _, name := range g.Held() {
		g.held(name, whyTodo)
	}
	if g.Entry("objects/info/alternates") != nil {
		g.o.note(false, fmt.Sprintf("some objects of %s are in another repository (objects/info/alternates), "+
			"which is not inside; add --mount-ro for it", g.Path))
	}
	return nil
}

// heldNames are the names that are covered, or have covered ones in them.
var heldNames = []string{"config", "config.worktree", "modules", "worktrees"}

// odd says why names in a git folder cannot be held one by one: nothing can be
// mounted over a link. Empty: they can.
func (g *gitFolder) odd() string {
	for _, e := range g.Entries {
		first, _, _ := strings.Cut(e.Name, "/")
		open := g.o.WritableConfig && first != "modules" && first != "worktrees"
		if e.Kind == beneath.Link && !open && slices.Contains(heldNames, first) {
			return e.Name + " is a link, which the agent could replace"
		}
	}
	return ""
}

// held protects a name if something is there.
func (g *gitFolder) held(name, why string) {
	if e := g.Entry(name); e != nil {
		g.keep(g.rel(name), e.Kind, why)
	}
}

// perWorktree reports whether git reads config.worktree. What git takes for false
// in other words counts as true here: a placeholder does no harm.
func (g *gitFolder) perWorktree() (on bool) {
	main := g.settings("config")
	if g.Role == git.Linked {
		main = g.o.settingsOf(path.Dir(path.Dir(g.Path)))
	}
	for _, e := range main {
		if e.Key() == "extensions.worktreeconfig" {
			on = e.Bare || e.Value != "false"
		}
	}
	return on
}

// settingsOf are those of the configuration of a git folder that was seen.
func (o *opener) settingsOf(folder string) []gitconfig.Entry {
	if f := o.Before.Folder(folder); f != nil {
		return (&gitFolder{Folder: f}).settings("config")
	}
	return nil
}

// config covers a configuration file with a copy that holds no secrets. Where git
// would read one that is absent an empty one stands in. One that cannot be read
// is covered by nothing: git cannot read it outside either.
func (g *gitFolder) config(name string, wouldRead bool) {
	e := g.Entry(name)
	if g.o.WritableConfig || e == nil && !wouldRead {
		return
	}
	if e == nil {
		g.placeholder(placeholder.Placeholder{Rel: g.rel(name)}, whyConfig)
		return
	}
	text, read := e.Text()
	switch {
	case e.Kind == beneath.Dir:
		g.keep(g.rel(name), e.Kind, whyConfig)
	case !read:
		g.pin(g.Rel(), whyConfig)
		g.add(Mount{Mode: Hidden, Why: whyConfig}, g.rel(name))
		g.o.note(true, g.at.Join(g.rel(name))+" cannot be read as a file of this size or kind, and is empty inside")
	default:
		g.made(g.rel(name), gitconfig.Sanitise([]byte(text), unneeded(g.Path)...), whyConfig)
	}
}

// unneeded are variables that would stop git inside. `git submodule update`
// writes core.worktree of a submodule anew whenever it finds one there
// (submodule--helper.c, ensure_core_worktree), which the mount forbids; without
// one git takes the folder of the submodule's .git file, which is the same.
func unneeded(folder string) []string {
	if strings.Contains(folder, "/modules/") {
		return []string{"core.worktree"}
	}
	return nil
}

// lockReason is what git says of a worktree that it is told to remove: its
// files are protected, so it would stop half-way.
const lockReason = "claudebox protects what was there before this session; remove it outside the sandbox"

// lock locks a worktree as `git worktree lock` does, unless the user has.
func (g *gitFolder) lock() {
	rel := g.rel("locked")
	content, err := g.at.Read(rel, smallLimit)
	if g.Entry("locked") == nil || err == nil && string(content) == lockReason {
		g.placeholder(placeholder.Placeholder{Rel: rel, Content: lockReason}, whyMoved)
	}
}

// hooks are read-only; where there is no folder an empty one stands in, or
// the agent could make it.
func (g *gitFolder) hooks() {
	if g.Entry("hooks") == nil {
		g.placeholder(placeholder.Placeholder{Rel: g.rel("hooks"), Dir: true}, whyHooks)
	}
	g.held("hooks", whyHooks)
}

// commondir must be absent in such a folder. An agent that writes one moves
// the host's git to a configuration of its own, so one that says "here"
// stands in; one left over from a killed session says the same. git 2.39 and
// 2.47 take it; libgit2 1.5 takes a plain "." for a path from where it was called
// and finds no repository.
func (g *gitFolder) commondir() error {
	if e := g.Entry("commondir"); e != nil {
		if text, _ := e.Text(); text != git.SamePlace || e.Kind != beneath.Regular {
			return unprotectable(g.at.Join(g.rel("commondir")),
				"it makes git take its configuration from elsewhere; remove it")
		}
	}
	g.placeholder(placeholder.Placeholder{Rel: g.rel("commondir"), Content: git.SamePlace}, whyMoved)
	return nil
}
