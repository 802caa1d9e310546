package git

import (
	"errors"
	"hash/maphash"
	"path"
	"slices"
	"strings"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/survey"
)

const (
	// textLimit is how large a file may be that is read here, in bytes.
	textLimit = 1 << 20
	// nameLimit is how many names a folder of git's may have.
	nameLimit = 100_000
	// depthLimit is how deep submodules lie in each other.
	depthLimit = 20
	// foreignLimit is how many entries a folder of another tool may have that are looked at.
	foreignLimit = 1000
)

// Look is how [Gather] looks.
type Look struct {
	Git  []string // entries named .git, below the root
	Bare []string // folders that git takes for a repository by what is in them
	Own  []string // git folders by their own right, whatever they are called
	// Relative are paths that the user's own configuration makes git obey in the working tree of any repository.
	Relative []string
	// Judge has what is in indexes judged, and HEAD.
	Judge bool
	// Skip reports whether a place is not looked at: no agent could write there. nil: all are.
	Skip func(at string) bool
}

// gatherer collects the places below one root.
type gatherer struct {
	Look
	reader
	seen   map[string]bool
	judged map[uint64]bool // whether a content holds a token, by its hash
	salt   maphash.Seed
	Snapshot
}

// Gather looks at git places below a root and at all git folders in them. What cannot be looked at is noted in
// [Folder.Closed].
func Gather(root *beneath.Folder, look Look) Snapshot {
	g := gatherer{
		Look: look, reader: reader{root, false}, seen: map[string]bool{},
		judged: map[uint64]bool{}, salt: maphash.MakeSeed(),
	}
	for _, rel := range look.Git {
		g.place(rel)
	}
	for _, rel := range look.Bare {
		role := Bare
		if strings.HasSuffix(rel, ".git") { // the usual name of one that holds nothing else
			role = Whole
		}
		if !g.seen[rel] && g.isBare(rel) {
			g.folder(rel, "", role, depthLimit)
		}
	}
	for _, rel := range look.Own {
		g.folder(rel, "", Whole, depthLimit)
	}
	return g.Snapshot
}

// place looks at one entry named .git.
func (g *gatherer) place(rel string) {
	what, err := g.look(rel)
	if err != nil || what.Kind == beneath.Absent || g.seen[rel] {
		return
	}
	dir := path.Dir(rel)
	if what.Kind == beneath.Link {
		if above, err := g.look(dir); err != nil || above.Kind != beneath.Dir {
			return // behind a link, where an index names a submodule: seen where it is
		}
	}
	g.relative(dir)
	if g.Skip != nil && g.Skip(g.abs(rel)) {
		return
	}
	if what.Kind == beneath.Dir {
		g.folder(rel, "", Whole, depthLimit)
		return
	}
	g.seen[rel] = true
	g.Files = append(g.Files, g.dotGitFile(rel, what))
}

// relative notes what git obeys in a folder by relative paths in the user's own configuration.
func (g *gatherer) relative(dir string) {
	for _, name := range g.Relative {
		at := path.Join(dir, name)
		if what, err := g.look(at); err == nil && what.Kind != beneath.Absent && !g.seen[at] {
			g.seen[at] = true
			g.Named = append(g.Named, File{Path: g.abs(at), Kind: what.Kind, Stamp: what.Stamp, Rel: at})
		}
	}
}

// folder looks at one git folder, and at those in it. in is the git folder that it lies in; empty: none.
func (g *gatherer) folder(rel, in string, role Role, depth int) {
	if g.seen[rel] || g.Skip != nil && g.Skip(g.abs(rel)) {
		return
	}
	g.seen[rel] = true
	f := folderLook{g, &Folder{Path: g.abs(rel), Role: role, Rel: rel, In: in}}
	if role == Bare {
		g.relative(rel)
	}
	f.inside(depth)
	g.Folders = append(g.Folders, *f.Folder)
}

// folderLook looks at one git folder.
type folderLook struct {
	*gatherer
	*Folder
}

// below returns the path below the git folder of what lies at rel.
func (f folderLook) below(rel string) string { return strings.TrimPrefix(f.abs(rel), f.Path+"/") }

// inside looks at all that is in a git folder.
func (f folderLook) inside(depth int) {
	names, err := f.list(f.Rel)
	if err != nil || depth == 0 {
		f.Closed = append(f.Closed, ".")
		return
	}
	f.apart = f.checkouts()
	for _, n := range names {
		f.entry(n, depth)
	}
	f.addSecrets()
}

// entry notes one name, and those below it as far as git or another tool obeys them.
func (f folderLook) entry(n named, depth int) {
	if !isGits(n.name) && slices.Contains(f.apart, path.Join(f.Rel, n.name)) {
		return
	}
	f.note(n.name, n.what)
	if n.what.Kind != beneath.Dir {
		return
	}
	var err error
	switch {
	case !isGits(n.name):
		f.foreign(n.name)
	case slices.Contains(listed, n.name):
		err = f.files(n.name)
	case n.name == "objects":
		const leads = "objects/info/alternates"
		var what beneath.Entry
		if what, err = f.look(path.Join(f.Rel, leads)); err == nil {
			f.note(leads, what)
		}
	case n.name == "modules", n.name == "worktrees":
		err = f.places(path.Join(f.Rel, n.name), n.name, depth)
	}
	if err != nil {
		f.Closed = append(f.Closed, n.name)
	}
}

// texts are the files that are read: configurations, what leads elsewhere, and the lock of a worktree.
var texts = []string{"config", "config.worktree", "commondir", "gitdir", "objects/info/alternates", "locked"}

// note adds a name.
func (f folderLook) note(name string, what beneath.Entry) {
	if what.Kind == beneath.Absent {
		return
	}
	e := Entry{Name: name, Kind: what.Kind, Stamp: what.Stamp}
	if slices.Contains(texts, name) {
		e.text, e.read = f.read(path.Join(f.Rel, name), e.Kind)
	}
	f.Entries = append(f.Entries, e)
	if f.Judge && what.Kind == beneath.Regular {
		f.odd = f.odd || !f.isOrdinary(name)
	}
}

// isOrdinary reports whether git, and a prompt that shows a branch, would find in an index or a HEAD no more than in
// those that git makes by itself.
func (f folderLook) isOrdinary(name string) bool {
	at := path.Join(f.Rel, name)
	switch {
	case name == "HEAD":
		return f.isOrdinaryRef(at)
	case name == "index":
		const limit = 64 << 20
		index, err := f.root.Read(at, limit)
		return err == nil && isOrdinaryIndex(index, HashSize(f.Entry("config").Settings()))
	}
	return !strings.HasPrefix(name, sharedIndex)
}

// isOrdinaryRef reports whether a reference, and each one that it leads on to, has a plain name: git and prompts show
// the last one.
func (f folderLook) isOrdinaryRef(at string) bool {
	const most = 5 // as in git (refs.c)
	for range most {
		what, err := f.look(at)
		if err == nil && (what.Kind == beneath.Absent || what.Kind == beneath.Dir) {
			return true // packed, or without a commit yet
		}
		text, ofText := f.root.Read(at, pathLimit)
		name, leads := strings.CutPrefix(strings.TrimSpace(string(text)), "ref:")
		name = strings.TrimSpace(name)
		if errors.Join(err, ofText) != nil || strings.ContainsFunc(name, IsStrange) {
			return false
		}
		if !leads {
			return true
		}
		if !strings.HasPrefix(name, "refs/heads/") { // in a worktree, others can lie elsewhere
			return false
		}
		if at = path.Join(f.Rel, name); f.Role == Linked {
			at = path.Join(f.In, name)
		}
	}
	return false
}

// files notes the files of a folder. Samples of hooks are noted apart, as git does not run them.
func (f folderLook) files(dir string) error {
	list, err := f.list(path.Join(f.Rel, dir))
	for _, n := range list {
		name := dir + "/" + n.name
		if dir == "hooks" && strings.HasSuffix(name, ".sample") && n.what.Kind == beneath.Regular {
			f.samples = append(f.samples, Entry{Name: name, Kind: n.what.Kind})
		} else {
			f.note(name, n.what)
		}
	}
	return err
}

// foreign notes all that lies in a folder of another tool.
func (f folderLook) foreign(name string) {
	if f.Role == Bare {
		return
	}
	add := func(rel string, kind beneath.Kind, stamp beneath.Stamp) {
		f.Entries = append(f.Entries, Entry{Name: f.below(rel), Kind: kind, Stamp: stamp})
	}
	seen := survey.Walk(f.root, survey.Question{
		From: []string{path.Join(f.Rel, name)}, Apart: f.apart, Wanted: survey.Everything, Limit: foreignLimit,
	}, nil)
	for _, file := range seen.Files {
		if file.Kind != beneath.Dir {
			add(file.Rel, file.Kind, file.Stamp)
		}
	}
	for _, place := range seen.Git {
		if what, err := f.look(place); err == nil {
			add(place, what.Kind, what.Stamp)
		}
	}
}

// checkouts returns the working trees that lie in the git folder, as people have them in a bare repository: each is a
// project of its own.
func (f folderLook) checkouts() (trees []string) {
	list, _ := f.list(path.Join(f.Rel, "worktrees"))
	for _, n := range list {
		at := path.Join(f.Rel, "worktrees", n.name)
		what, err := f.look(at + "/gitdir")
		if err != nil {
			continue
		}
		text, _ := f.read(at+"/gitdir", what.Kind)
		file, ok := dotGit(f.abs(at), text)
		if tree, in := pathname.Cut(path.Dir(file), f.Path); ok && in {
			trees = append(trees, path.Join(f.Rel, tree))
		}
	}
	return trees
}

// places looks at the git folders in modules/ and worktrees/. A submodule's name may have slashes in it, so other
// folders are searched as well.
func (f folderLook) places(at, name string, depth int) error {
	list, err := f.list(at)
	for _, n := range list {
		if err == nil {
			err = f.inner(path.Join(at, n.name), name, depth)
		}
	}
	return err
}

func (f folderLook) inner(at, name string, depth int) error {
	what, err := f.look(at)
	switch {
	case err != nil || what.Kind == beneath.Regular:
		return err
	case what.Kind != beneath.Dir:
		f.Entries = append(f.Entries, Entry{Name: f.below(at), Kind: what.Kind, Stamp: what.Stamp})
	case name == "worktrees":
		f.folder(at, f.Rel, Linked, depth-1)
	case f.isGitFolder(at):
		f.folder(at, f.Rel, Whole, depth-1)
	case depth > 1:
		return f.places(at, name, depth-1)
	}
	return nil
}
