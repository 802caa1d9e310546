package git

import (
	"errors"
	"hash/maphash"
	"path"
	"slices"
	"strings"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/survey"
)

const (
	// textLimit is how large a file may be that is judged by its content, in bytes.
	textLimit = 1 << 20
	// refsLimit is the same for packed-refs: a repository may have hundreds of thousands of refs.
	refsLimit = 64 << 20
	// nameLimit is how many names a folder of git's may have.
	nameLimit = 100_000
	// depthLimit is how deep submodules lie in each other.
	depthLimit = 20
	// foreignLimit is how many entries a folder of another tool may have that were there before the session.
	foreignLimit = 1000
)

// Look is how [Gather] looks.
type Look struct {
	Git  []string // entries named .git, below the root
	Bare []string // folders that git takes for a repository by what is in them
	Own  []string // git folders by their own right, whatever they are called
	// Relative are paths that the user's own configuration makes git obey in the working tree of any repository.
	Relative []string
	// Skip reports whether a git folder is not looked at: no agent could write there. nil: all are.
	Skip func(at string) bool
	// Before is what the look before the session saw: files that are the same are not read again. It is nil in that
	// look itself.
	Before *Snapshot
	// Since is when the session began, in nanoseconds since 1970. What lies deep in a git folder and is older was there
	// before.
	Since int64
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

// Gather looks at git places below a root and at all git folders in them. It goes on where something cannot be looked
// at. Before a session that is noted in [Folder.Closed], and no error; after one, folders that the agent closed are
// opened, and what stays closed is an error.
func Gather(root *beneath.Folder, look Look) (Snapshot, error) {
	g := gatherer{
		Look: look, reader: reader{root, look.Before != nil}, seen: map[string]bool{},
		judged: map[uint64]bool{}, salt: maphash.MakeSeed(),
	}
	var faults []error
	for _, rel := range look.Git {
		faults = append(faults, g.place(rel))
	}
	for _, rel := range look.Bare {
		role := Bare
		if strings.HasSuffix(rel, ".git") { // the usual name of one that holds nothing else
			role = Whole
		}
		if !g.seen[rel] && g.isBare(rel) {
			faults = append(faults, g.folder(rel, "", role, depthLimit))
		}
	}
	for _, rel := range look.Own {
		faults = append(faults, g.folder(rel, "", Whole, depthLimit))
	}
	return g.Snapshot, errors.Join(faults...)
}

// place looks at one entry named .git.
func (g *gatherer) place(rel string) error {
	what, err := g.look(rel)
	if err != nil || what.Kind == beneath.Absent || g.seen[rel] {
		return g.afterSession(err)
	}
	dir := path.Dir(rel)
	if what.Kind == beneath.Link {
		if above, err := g.look(dir); err != nil || above.Kind != beneath.Dir {
			return nil // behind a link, where an index names a submodule: judged where it is
		}
	}
	g.relative(dir)
	if what.Kind == beneath.Dir {
		return g.folder(rel, "", Whole, depthLimit)
	}
	g.seen[rel] = true
	g.Files = append(g.Files, g.dotGitFile(rel, what))
	return nil
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

// afterSession returns err, but nil in the look before a session: git cannot read that place either.
func (g *gatherer) afterSession(err error) error {
	if g.Before == nil {
		return nil
	}
	return err
}

// folder looks at one git folder, and at those in it. in is the git folder that it lies in; empty: none.
func (g *gatherer) folder(rel, in string, role Role, depth int) error {
	if g.seen[rel] || g.Skip != nil && g.Skip(g.abs(rel)) {
		return nil
	}
	g.seen[rel] = true
	f := folderLook{g, &Folder{Path: g.abs(rel), Role: role, Rel: rel, In: in}}
	if g.Before != nil {
		f.before = g.Before.Folder(f.Path)
	}
	if role == Bare { // in other git folders any new name is moved aside
		g.relative(rel)
	}
	var err error
	if depth == 0 {
		f.aside(rel, tooDeep)
	} else if err = f.inside(depth); err != nil && f.before == nil {
		f.disarm(rel, "it cannot be looked at")
	}
	g.Folders = append(g.Folders, *f.Folder)
	return g.afterSession(err)
}

const (
	tooDeep = "it lies too deep"
	tooMuch = "there is too much in it"
)

// folderLook looks at one git folder.
type folderLook struct {
	*gatherer
	*Folder
}

// below returns the path below the git folder of what lies at rel.
func (f folderLook) below(rel string) string { return strings.TrimPrefix(f.abs(rel), f.Path+"/") }

func (f folderLook) aside(rel, why string) {
	f.odd = append(f.odd, Repair{Do: MoveAside, Rel: rel, Why: why})
}

func (f folderLook) disarm(rel, why string) {
	f.odd = append(f.odd, Repair{Do: Disarm, Rel: rel, Why: why})
}

// inside looks at all that is in a git folder.
func (f folderLook) inside(depth int) error {
	names, err := f.within(f.Rel)
	if err != nil {
		return err
	}
	var faults []error
	f.apart = f.checkouts()
	for _, n := range names {
		faults = append(faults, f.entry(n, depth))
	}
	if f.Before == nil {
		f.addSecrets()
		return errors.Join(faults...)
	}
	return errors.Join(append(faults, f.deep())...)
}

// within lists a folder. One with too many names is moved aside or, if it is the git folder itself, disarmed.
func (f folderLook) within(at string) ([]named, error) {
	list, err := f.list(at)
	if err != nil && at == f.Rel && f.Before == nil {
		f.Closed = append(f.Closed, ".")
	}
	switch {
	case !errors.Is(err, beneath.ErrTooLarge):
		return list, err
	case at == f.Rel:
		f.disarm(at, tooMuch)
	default:
		f.aside(at, tooMuch)
	}
	return nil, nil
}

// entry notes one name, and those below it as far as its rule says so.
func (f folderLook) entry(n named, depth int) (err error) {
	sort := ruleOf(n.name).sort
	if sort == unknown && (f.Role == Bare && f.Before != nil || slices.Contains(f.apart, path.Join(f.Rel, n.name))) {
		return nil
	}
	f.note(n.name, n.what)
	if n.what.Kind != beneath.Dir {
		return nil
	}
	switch sort {
	case unknown:
		f.foreign(n.name)
	case listed, state:
		err = f.files(n.name)
	case store:
		const leads = "objects/info/alternates"
		var what beneath.Entry
		if what, err = f.look(path.Join(f.Rel, leads)); err == nil {
			f.note(leads, what)
		}
	case places:
		err = f.places(path.Join(f.Rel, n.name), n.name, depth)
	}
	if err != nil && f.Before == nil {
		f.Closed = append(f.Closed, n.name)
	}
	return err
}

// note adds a name. If it is judged by its content and has changed since before, the content is read.
func (f folderLook) note(name string, what beneath.Entry) {
	if what.Kind == beneath.Absent {
		return
	}
	e := Entry{Name: name, Kind: what.Kind, Stamp: what.Stamp}
	at, sort := path.Join(f.Rel, name), ruleOf(name).sort
	if f.judges(e, sort) {
		e.text, e.read = f.read(at, e.Kind)
	}
	if e.isIndex() && f.Before != nil && !e.same(f.before.Entry(name)) {
		e.hashSize = f.hashSize()
		e.read = f.isGitsIndex(at, e.hashSize)
	}
	if name == "gitdir" && e.read {
		e.back = leadsBackTo(f.abs(path.Dir(at)), e.text)
	}
	f.Entries = append(f.Entries, e)
	if f.Before == nil && sort == setting {
		f.Own = append(f.Own, e.sums()...)
	}
	if f.Before == nil && name == excluding {
		f.Ignores = Ignoring([]byte(e.text))
	}
}

// indexLimit is how large a git index may be, in bytes: it has a million files.
const indexLimit = 128 << 20

// isGitsIndex reports whether an index holds all that git reads, and nothing that git would not write there. One that
// leaves something to other files may stay in a repository where that was so before the session.
func (f folderLook) isGitsIndex(at string, hashSize int) bool {
	content, err := f.root.Read(at, indexLimit)
	kind, ok := CheckIndex(content, hashSize)
	sparse := f.before.isSparse() || f.Role == Linked && f.Before.Folder(path.Dir(path.Dir(f.Path))).isSparse()
	return err == nil && ok && (!kind.Split || f.before.isSplit()) && (!kind.Sparse || sparse)
}

// hashSize returns the length of object names in the repository.
func (f folderLook) hashSize() int {
	common := f.Rel
	if f.Role == Linked {
		common = path.Dir(path.Dir(f.Rel))
	}
	text, _ := f.read(path.Join(common, "config"), beneath.Regular)
	config, _ := gitconfig.Parse([]byte(text))
	return HashSize(config)
}

// isSplit reports whether the folder's index was split.
func (f *Folder) isSplit() bool {
	shared := func(e Entry) bool { return strings.HasPrefix(e.Name, sharedIndex) }
	return f != nil && slices.ContainsFunc(f.Entries, shared)
}

// isSparse reports whether the folder's configuration makes its index a sparse one.
func (f *Folder) isSparse() bool {
	return f != nil && slices.ContainsFunc([]string{"true", "yes", "on", "1"}, func(value string) bool {
		return slices.Contains(f.Own, sumOf(gitconfig.Entry{Section: "index", Name: "sparse", Value: value}))
	})
}

// judges reports whether an entry is judged by its content. Before a session only files that lead elsewhere are, and
// those that [Folder.Held] decides about.
func (f folderLook) judges(e Entry, sort sort) bool {
	first, _, inner := strings.Cut(e.Name, "/")
	switch {
	case sort != leads && sort != setting && sort != file, e.isIndex():
		return false
	case f.Before == nil:
		return sort != file || inner && first != "hooks" || e.Name == "locked"
	}
	return !e.same(f.before.Entry(e.Name))
}

// leadsBackTo returns where the .git file that a gitdir file names leads, wherever it lies. Only who may write there
// can make it lead back.
func leadsBackTo(folder, text string) string {
	file, ok := dotGit(folder, text)
	if !ok {
		return ""
	}
	content, err := beneath.ReadIn(path.Dir(file), ".git", textLimit)
	if to, ok := (File{Path: file, text: string(content)}).target(); ok && err == nil {
		return to
	}
	return ""
}

// files notes the files of a folder in which each has a rule. Samples of hooks are noted apart, as git does not run
// them.
func (f folderLook) files(dir string) error {
	list, err := f.within(path.Join(f.Rel, dir))
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

// foreign notes all that lies in a folder of another tool, unless the whole folder is moved aside.
func (f folderLook) foreign(name string) {
	if f.Role == Bare || f.Before != nil && f.before.Entry(name) == nil {
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
// project of its own. After a session only those that were there before count.
func (f folderLook) checkouts() (trees []string) {
	list, _ := f.list(path.Join(f.Rel, "worktrees"))
	for _, n := range list {
		at := path.Join(f.Rel, "worktrees", n.name)
		what, err := f.look(at + "/gitdir")
		e := Entry{Kind: what.Kind, Stamp: what.Stamp}
		if err != nil || f.Before != nil && !e.same(f.Before.Folder(f.abs(at)).Entry("gitdir")) {
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
	list, err := f.within(at)
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
	case err != nil:
		return err
	case what.Kind == beneath.Regular:
		if f.Before != nil && what.Stamp.Change >= f.Since {
			f.aside(at, "git makes no file there")
		}
	case what.Kind != beneath.Dir:
		f.Entries = append(f.Entries, Entry{Name: f.below(at), Kind: what.Kind, Stamp: what.Stamp})
	case name == "worktrees":
		return f.folder(at, f.Rel, Linked, depth-1)
	case f.isGitFolder(at):
		return f.folder(at, f.Rel, Whole, depth-1)
	case depth == 1:
		f.aside(at, tooDeep)
	default:
		return f.places(at, name, depth-1)
	}
	return nil
}
