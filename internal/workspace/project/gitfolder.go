package project

import (
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/secretfile"
	"claudebox/internal/workspace/survey"
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
	whyConfig  = "git runs what it names"
	whyHooks   = "git runs hooks"
	whyMoved   = "git finds its config by it"
	whyTodo    = "git runs what it lists"
	whySecrets = "there are secrets in it"
)

// gitFolder is a git folder, as it was seen before the session.
type gitFolder struct {
	below
	*git.Folder
	v       *view
	own     bool   // the project's own repository
	guarded bool   // named .git, or in one: git runs what it names without being asked
	tree    string // its working tree, where git starts programs
}

// gitFolders are the git folders below one root, those that lie in others behind
// them, and the project's own before all.
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
	guarded := map[string]bool{}
	for i := range list {
		g := &list[i]
		g.guarded = g.own || strings.EqualFold(path.Base(g.Path), ".git") || guarded[g.In]
		guarded[g.Rel], g.tree = g.guarded, g.checkout()
	}
	return list
}

// checkout is the working tree of a git folder, as its files say.
func (g *gitFolder) checkout() string {
	if g.Path == g.v.repo.Dir {
		return g.v.repo.Worktree
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
func (g *gitFolder) rel(name string) string { return path.Join(g.Rel, name) }

// protect protects a git folder of a project, or of a folder mounted read-write
// beside it; one of too many as a whole. A folder that is a repository by what is
// in it (bare) is protected nowhere: most are tracked files of a test. It is looked
// at when the session has ended; only what is secret in its configuration stays out.
func (g *gitFolder) protect(tooMany bool) error {
	for _, name := range g.Closed {
		g.closed(g.rel(name))
	}
	if !g.guarded {
		return g.secrets()
	}
	g.pin(g.Rel, whyConfig)
	odd := g.odd()
	if tooMany {
		odd = "there are more than " + strconv.Itoa(repoLimit) + " git folders"
	}
	switch {
	case slices.Contains(g.Closed, "."):
		return nil
	case odd != "" && g.Rel == ".":
		return unprotectable(g.Path, errors.New(odd))
	case odd != "":
		g.add(g.Rel, Mount{Mode: ReadOnly, Dir: true, Why: whyConfig})
		g.note(true, "%s is read-only inside: %s", g.Path, odd)
		return g.secrets()
	case g.Role == git.Linked:
		g.held("gitdir", whyMoved)
		g.held("commondir", whyMoved)
		g.lock()
	default:
		if err := g.commondir(); err != nil {
			return err
		}
		g.config("config", true)
		if g.Entry("hooks") == nil { // or the agent could make it
			g.standIn(StandIn{Rel: g.rel("hooks"), Dir: true}, whyHooks)
		}
		g.held("hooks", whyHooks)
	}
	g.config("config.worktree", g.perWorktree())
	if g.Path != g.v.repo.Dir && !g.v.given(g.tree) {
		g.held("index", "it says what is tracked in another checkout")
	}
	if err := g.leftovers(); err != nil {
		return err
	}
	for _, name := range g.Held() {
		g.held(name, whyTodo)
	}
	if g.Entry("objects/info/alternates") != nil {
		g.note(false, "some objects of %s are in another repository (objects/info/alternates), "+
			"which is not inside; add --mount-ro for it", g.Path)
	}
	return nil
}

// odd says why names in a git folder cannot be held one by one: nothing can be
// mounted over a link. Empty: they can.
func (g *gitFolder) odd() string {
	held := []string{"modules", "worktrees", "config", "config.worktree"} // or have held ones in them
	if g.v.WritableConfig {
		held = held[:2]
	}
	for _, e := range g.Entries {
		if first, _, _ := strings.Cut(e.Name, "/"); e.Kind == beneath.Link && slices.Contains(held, first) {
			return e.Name + " is a link, which the agent could replace"
		}
	}
	if g.Role != git.Linked && g.Path != g.v.repo.Dir && g.isElsewhere() {
		return "its commondir makes git take its configuration from elsewhere"
	}
	return ""
}

// isElsewhere reports whether a commondir names another place than the folder itself.
func (g *gitFolder) isElsewhere() bool {
	e := g.Entry("commondir")
	if e == nil {
		return false
	}
	text, _ := e.Text()
	return text != git.SamePlace || e.Kind != beneath.Regular
}

// held protects a name if something is there.
func (g *gitFolder) held(name, why string) {
	if e := g.Entry(name); e != nil {
		g.keep(g.rel(name), e.Kind, why)
	}
}

// perWorktree reports whether git reads config.worktree. What git takes for false
// in other words counts as true here: a stand-in does no harm.
func (g *gitFolder) perWorktree() (on bool) {
	main := g
	if g.Role == git.Linked {
		main = &gitFolder{Folder: g.v.before.Folder(path.Dir(path.Dir(g.Path)))}
	}
	for _, e := range main.settings("config") {
		if e.Key() == "extensions.worktreeconfig" {
			on = e.Bare || e.Value != "false"
		}
	}
	return on
}

// config covers a configuration file with a copy that holds no secrets. Where git
// would read one that is absent an empty one stands in. One that cannot be read
// is covered by nothing: git cannot read it outside either.
func (g *gitFolder) config(name string, wouldRead bool) {
	e, rel := g.Entry(name), g.rel(name)
	if g.v.WritableConfig || e == nil && !wouldRead {
		return
	}
	if e == nil {
		g.standIn(StandIn{Rel: rel}, whyConfig)
		return
	}
	text, read := e.Text()
	switch {
	case e.Kind == beneath.Dir:
		g.keep(rel, e.Kind, whyConfig)
	case !read:
		g.cover(rel, Mount{Mode: Hidden, Why: whyConfig})
		g.note(true, "%s cannot be read as a file of this size or kind, and is empty inside", g.at.Join(rel))
	default:
		// `git submodule update` writes core.worktree of a submodule anew whenever it
		// finds one there (submodule--helper.c, ensure_core_worktree), which the mount
		// forbids; without one git takes the folder of the submodule's .git file, which
		// is the same.
		var without []string
		if strings.Contains(g.Path, "/modules/") {
			without = []string{"core.worktree"}
		}
		g.cover(rel, Mount{Mode: Made, Content: gitconfig.Sanitise([]byte(text), without...), Why: whyConfig})
	}
}

// lockReason is what git says of a worktree that it is told to remove: its
// files are protected, so it would stop half-way.
const lockReason = "claudebox protects what was there before this session; remove it outside the sandbox"

// lock locks a worktree as `git worktree lock` does, unless the user has.
func (g *gitFolder) lock() {
	rel := g.rel("locked")
	content, err := g.at.Read(rel, smallLimit)
	if g.Entry("locked") == nil || err == nil && string(content) == lockReason {
		g.standIn(StandIn{Rel: rel, Content: lockReason}, whyMoved)
	}
}

// commondir must be absent in such a folder. An agent that writes one moves
// the host's git to a configuration of its own, so one that says "here"
// stands in; one left over from a killed session says the same. git 2.39 and
// 2.47 take it; libgit2 1.5 takes a plain "." for a path from where it was called
// and finds no repository.
func (g *gitFolder) commondir() error {
	rel := g.rel("commondir")
	if g.isElsewhere() {
		return unprotectable(g.at.Join(rel),
			errors.New("it makes git take its configuration from elsewhere; remove it"))
	}
	g.standIn(StandIn{Rel: rel, Content: git.SamePlace}, whyMoved)
	return nil
}

// secrets covers all that is secret in a git folder that is not protected
// otherwise.
func (g *gitFolder) secrets() error {
	if g.at == g.v.tree {
		g.judged = append(g.judged, g.Rel)
	}
	for _, name := range []string{"config", "config.worktree"} {
		if err := g.coverFile(g.rel(name), withoutSecrets); err != nil {
			return err
		}
	}
	return g.leftovers()
}

// leftovers covers what people and programs leave in a git folder: copies of its
// configuration (config.bak), passwords (git-credential-store(1)), addresses with
// a password in them, and what git-lfs writes down.
func (g *gitFolder) leftovers() error {
	for _, e := range g.Entries {
		var err error
		switch name := e.Name; {
		case strings.Contains(name, "/") || name == "config" || name == "config.worktree": // has been dealt with
		case name == "remotes" || name == "branches": // addresses, as git wrote them once (gitrepository-layout(5))
			if slices.ContainsFunc(g.Entries, func(in git.Entry) bool { return strings.HasPrefix(in.Name, name+"/") }) {
				err = g.coverFile(g.rel(name), nil)
			}
		case strings.HasPrefix(name, git.Aside), // configurations as they were, secrets included
			name == "credentials" || secretfile.Of(nil, []byte(name)) == secretfile.Secret:
			err = g.coverFile(g.rel(name), nil)
		case name == "FETCH_HEAD":
			err = g.coverFile(g.rel(name), withoutPasswords)
		case name == "logs":
			if content, fault := g.at.Read(g.rel("logs/HEAD"), configLimit); fault == nil && hasUserinfo(content) {
				err = g.coverAll(name, withoutPasswords)
			}
		case name == "lfs":
			err = g.coverAll(name, tokens, "objects")
		case strings.HasPrefix(strings.ToLower(name), "config"):
			err = g.coverFile(g.rel(name), withoutSecrets)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// instead says what is seen instead of a file with some content, or of one that
// could not be read: the same, another content, or nothing of it.
type instead func(content []byte, read bool) (copied []byte, covered bool)

// withoutSecrets is for configurations of git.
func withoutSecrets(content []byte, read bool) ([]byte, bool) {
	if !read || !gitconfig.HoldsSecrets(content) {
		return nil, !read
	}
	return gitconfig.Sanitise(content), true
}

// withoutPasswords is for what git writes down: before 2.28 it wrote addresses as
// they were typed.
func withoutPasswords(content []byte, read bool) ([]byte, bool) {
	return []byte(gitconfig.StripUserinfo(string(content))), read && hasUserinfo(content)
}

// tokens is for files that may hold a token, or an address with a password.
func tokens(content []byte, read bool) ([]byte, bool) {
	return nil, !read || secretfile.HoldsToken(content) || hasUserinfo(content)
}

func hasUserinfo(content []byte) bool {
	return gitconfig.StripUserinfo(string(content)) != string(content)
}

// coverAll covers the files in a folder of the git folder, or one file.
func (g *gitFolder) coverAll(name string, by instead, skipped ...string) error {
	const limit = 2000
	files := []survey.File{{Rel: g.rel(name)}}
	if g.Entry(name).Kind != beneath.Regular {
		files = survey.Walk(g.at, survey.Question{
			From: []string{g.rel(name)}, Skipped: skipped, Wanted: survey.Everything, Limit: limit,
		}, nil).Files
	}
	for _, f := range files {
		if f.Kind == beneath.Dir {
			continue
		}
		if err := g.coverFile(f.Rel, by); err != nil {
			return err
		}
	}
	return nil
}

// coverFile covers a file if it is a secret; one without a rule, or a folder, by
// nothing. What the profile shows is none of this sandbox, nor what is tracked, as
// the bare repositories of a test.
func (g *gitFolder) coverFile(rel string, by instead) error {
	inner := g.at == g.v.tree
	what, err := g.at.Look(rel)
	if err != nil || what.Kind != beneath.Regular && (what.Kind != beneath.Dir || by != nil) ||
		inner && (g.v.shown(rel) || g.v.tracked.Has(rel) || g.v.tracked.Has(path.Dir(rel)+"/config")) {
		return err
	}
	var copied []byte
	if by != nil {
		content, err := g.at.Read(rel, configLimit)
		covered := false
		if copied, covered = by(content, err == nil); !covered {
			return nil
		}
	}
	if copied == nil {
		g.hide(rel, what.Kind == beneath.Dir)
		if inner {
			g.stay = append(g.stay, rel)
		}
		return nil
	}
	g.cover(rel, Mount{Mode: Made, Content: copied, Why: whySecrets})
	if inner {
		g.copied, g.stay = append(g.copied, rel), append(g.stay, rel)
	}
	if path.Base(rel) == "FETCH_HEAD" || strings.HasPrefix(rel, g.rel("logs")+"/") {
		g.note(true, "%s holds an address with a password: inside it is a copy without, which git cannot write to; "+
			"take the password out of the file", g.at.Join(rel))
	}
	return nil
}
