package git

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/survey"
)

const (
	// textLimit is what a file that is judged may have, in bytes.
	textLimit = 1 << 20
	// nameLimit is how many names one folder of git's may have.
	nameLimit = 100_000
	// depthLimit is how deep submodules lie in each other.
	depthLimit = 20
	// foreignLimit is how many entries a folder of another tool may have that
	// were there before the session.
	foreignLimit = 1000
)

// Look is how [Gather] looks.
type Look struct {
	Git  []string // entries named .git, below the root
	Bare []string // folders that git takes for a repository by what is in them
	Own  []string // git folders by their own right, whatever they are called
	// Relative are paths that the user's own configuration makes git obey in the
	// working tree of any repository.
	Relative []string
	// Before is what was seen before the session. What is the same still is not
	// read. Nil: this is the look before.
	Before *Snapshot
	// Since is when the session began, in nanoseconds since 1970. What lies deep
	// in a git folder and is older was there before.
	Since int64
}

// gatherer collects the places below one root.
type gatherer struct {
	Look
	root *beneath.Folder
	open bool // what is closed is the agent's doing
	seen map[string]bool
	Snapshot
}

// Gather looks at git places below a root and at all git folders in them. What
// cannot be looked at keeps no other from being looked at. Before a session it is
// noted in [Folder.Closed]; after one, folders that the agent closed are opened,
// and what remains closed is an error.
func Gather(root *beneath.Folder, look Look) (Snapshot, error) {
	g := gatherer{Look: look, root: root, open: look.Before != nil, seen: map[string]bool{}}
	faults := []error{g.all(look.Git)}
	for _, rel := range look.Own {
		faults = append(faults, g.folder(rel, "", Whole, depthLimit))
	}
	for _, rel := range look.Bare {
		if !g.seen[rel] && g.isBare(rel) {
			faults = append(faults, g.folder(rel, "", bareRole(rel), depthLimit))
		}
	}
	return g.Snapshot, errors.Join(faults...)
}

// all looks at entries named .git: at half of them beside the others, where there
// are many.
func (g *gatherer) all(places []string) error {
	const many = 8
	look := func(g *gatherer, places []string) error {
		var faults []error
		for _, rel := range places {
			faults = append(faults, g.place(rel))
		}
		return errors.Join(faults...)
	}
	if len(places) < many {
		return look(g, places)
	}
	half := gatherer{Look: g.Look, root: g.root, open: g.open, seen: map[string]bool{}}
	var fault error
	var beside sync.WaitGroup
	beside.Go(func() { fault = look(&half, places[len(places)/2:]) })
	err := look(g, places[:len(places)/2])
	beside.Wait()
	for rel := range half.seen {
		g.seen[rel] = true
	}
	g.Snapshot = g.Snapshot.And(half.Snapshot)
	return errors.Join(err, fault)
}

// bareRole takes a folder with the usual name of a bare repository for one that
// holds nothing else.
func bareRole(rel string) Role {
	if strings.HasSuffix(rel, ".git") {
		return Whole
	}
	return Bare
}

// abs is the absolute path of what lies at rel; "." is the root.
func (g *gatherer) abs(rel string) string { return path.Join(g.root.Path(), rel) }

// isBare reports whether git takes what stands in HEAD for one (setup.c,
// validate_headref). One that cannot be read counts.
func (g *gatherer) isBare(rel string) bool {
	at := path.Join(rel, "HEAD")
	what, err := g.look(at)
	if err != nil || what.Kind != beneath.Regular {
		return err != nil || what.Kind == beneath.Link || what.Kind == beneath.Special
	}
	content, err := g.root.Read(at, textLimit)
	head := strings.TrimRight(string(content), " \t\r\n")
	return err != nil || strings.HasPrefix(head, "ref:") ||
		len(head) >= 40 && strings.Trim(head[:40], "0123456789abcdefABCDEF") == ""
}

func (g *gatherer) place(rel string) error {
	what, err := g.look(rel)
	if err != nil || what.Kind == beneath.Absent || g.seen[rel] {
		return g.unlessBefore(err)
	}
	if what.Kind == beneath.Link && !g.isDir(path.Dir(rel)) {
		return nil // behind a link, where an index names a submodule: judged where it is
	}
	for _, name := range g.Relative {
		g.relative(path.Join(path.Dir(rel), name))
	}
	if what.Kind == beneath.Dir {
		return g.folder(rel, "", Whole, depthLimit)
	}
	f := File{Path: g.abs(rel), Kind: what.Kind, Stamp: what.Stamp, rel: rel}
	if what.Kind == beneath.Regular && g.Before != nil {
		content, err := g.root.Read(rel, textLimit)
		f.text, f.read = string(content), err == nil
	}
	g.seen[rel] = true
	g.Files = append(g.Files, f)
	return nil
}

func (g *gatherer) isDir(rel string) bool {
	what, err := g.look(rel)
	return err == nil && what.Kind == beneath.Dir
}

// relative notes what the user's own configuration names in a working tree.
func (g *gatherer) relative(rel string) {
	what, err := g.look(rel)
	if err == nil && what.Kind != beneath.Absent && !g.seen[rel] {
		g.seen[rel] = true
		g.Named = append(g.Named, File{Path: g.abs(rel), Kind: what.Kind, Stamp: what.Stamp, rel: rel})
	}
}

// unlessBefore drops an error of the look before a session: what cannot be looked
// at then is closed to git, too.
func (g *gatherer) unlessBefore(err error) error {
	if g.Before == nil {
		return nil
	}
	return err
}

// look is [beneath.Folder.Look] that opens what the agent has closed.
func (g *gatherer) look(rel string) (beneath.Entry, error) {
	what, err := g.root.Look(rel)
	if errors.Is(err, fs.ErrPermission) && g.open {
		g.openTo(path.Dir(rel))
		what, err = g.root.Look(rel)
	}
	return what, err
}

// openTo opens a folder, and those on the way to it that are closed.
func (g *gatherer) openTo(rel string) {
	for i := range len(rel) + 1 {
		if i < len(rel) && rel[i] != '/' {
			continue
		}
		if _, err := g.root.Look(path.Join(rel[:i], "HEAD")); errors.Is(err, fs.ErrPermission) {
			_ = g.root.Chmod(rel[:i], 0o755)
		}
	}
}

// named is a name in a folder, and what it is.
type named struct {
	name string
	what beneath.Entry
}

// list lists a folder in order, and opens one that the agent has closed.
func (g *gatherer) list(rel string) ([]named, error) {
	hooks := path.Base(rel) == "hooks"
	d, err := g.root.OpenDir(rel)
	if errors.Is(err, fs.ErrPermission) && g.open {
		g.openTo(rel)
		_ = g.root.Chmod(rel, 0o755)
		d, err = g.root.OpenDir(rel)
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(nameLimit + 1)
	switch {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, err
	case len(entries) > nameLimit:
		return nil, beneath.ErrTooLarge
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	list := make([]named, 0, len(entries))
	for _, e := range entries {
		name := e.Name()
		if hooks && strings.HasSuffix(name, ".sample") && e.Type().IsRegular() {
			continue // no hook
		}
		var st unix.Stat_t
		switch err := unix.Fstatat(int(d.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); {
		case errors.Is(err, unix.EACCES) && g.open:
			_ = g.root.Chmod(rel, 0o755)
			return g.list(rel)
		case errors.Is(err, unix.ENOENT):
			continue
		case err != nil:
			return nil, err
		}
		list = append(list, named{name, beneath.Entry{
			Kind: beneath.KindOf(st.Mode), Stamp: beneath.Stamp{Ino: st.Ino, Size: st.Size, Change: st.Ctim.Nano()},
		}})
	}
	return list, nil
}

// folder looks at one git folder, and at those in it. in is the one that it
// lies in; empty: none.
func (g *gatherer) folder(rel, in string, role Role, depth int) error {
	if g.seen[rel] {
		return nil
	}
	g.seen[rel] = true
	f := Folder{Path: g.abs(rel), Role: role, rel: rel, in: in}
	if g.Before != nil {
		f.before = g.Before.Folder(f.Path)
	}
	if depth == 0 {
		f.odd = append(f.odd, Repair{Do: MoveAside, Rel: rel, Why: "it lies too deep"})
		g.Folders = append(g.Folders, f)
		return nil
	}
	err := g.inside(&f, rel, depth)
	if err != nil && f.before == nil {
		f.odd = append(f.odd, Repair{Do: Disarm, Rel: rel, Why: "it cannot be looked at"})
	}
	g.Folders = append(g.Folders, f)
	return g.unlessBefore(err)
}

// inside looks at all that is in a git folder.
func (g *gatherer) inside(f *Folder, rel string, depth int) error {
	names, err := g.list(rel)
	if err != nil && g.Before == nil {
		f.Closed = append(f.Closed, ".")
	}
	if err != nil && !errors.Is(err, beneath.ErrTooLarge) {
		return err
	}
	if err != nil {
		f.odd = append(f.odd, Repair{Do: Disarm, Rel: rel, Why: "there is too much in it"})
		names = nil
	}
	var faults []error
	for _, n := range names {
		faults = append(faults, g.entry(f, rel, n, depth))
	}
	return errors.Join(append(faults, g.deep(f, rel))...)
}

// entry notes one name, and those below it as its rule says.
func (g *gatherer) entry(f *Folder, rel string, n named, depth int) error {
	name, at, rule := n.name, path.Join(rel, n.name), ruleOf(n.name)
	if rule.sort == unknown && f.Role == Bare && g.Before != nil {
		return nil
	}
	g.note(f, rel, name, rule, n.what)
	if n.what.Kind != beneath.Dir {
		return nil
	}
	var err error
	switch rule.sort {
	case unknown:
		if f.Role != Bare {
			err = g.foreign(f, rel, name)
		}
	case listed, state:
		err = g.files(f, rel, name)
	case store:
		err = g.note1(f, rel, "objects/info/alternates")
	case places:
		err = g.places(f, at, name, depth)
	}
	if err != nil && g.Before == nil {
		f.Closed = append(f.Closed, name)
	}
	return err
}

// note adds a name. What is judged by its content is read if it is not the same
// as before.
func (g *gatherer) note(f *Folder, rel, name string, rule rule, what beneath.Entry) {
	if what.Kind == beneath.Absent {
		return
	}
	e := Entry{Name: name, Kind: what.Kind, Stamp: what.Stamp}
	if g.judges(f, &e, rule.sort) {
		g.read(&e, path.Join(rel, name))
	}
	f.Entries = append(f.Entries, e)
	if g.Before == nil && rule.sort == setting {
		for _, s := range e.Settings() {
			f.Own = append(f.Own, sumOf(s))
		}
	}
}

// judges reports whether an entry is judged by its content. Before a session that
// is so for what leads elsewhere, and for what [Folder.Held] gives.
func (g *gatherer) judges(f *Folder, e *Entry, sort sort) bool {
	switch {
	case sort == leads || sort == setting:
		return g.Before == nil || !e.same(f.before.entry(e.Name))
	case sort != file:
		return false
	case g.Before == nil:
		first, _, inner := strings.Cut(e.Name, "/")
		return inner && first != "hooks"
	}
	return !e.same(f.before.entry(e.Name))
}

func (g *gatherer) note1(f *Folder, rel, name string) error {
	what, err := g.look(path.Join(rel, name))
	if err == nil {
		g.note(f, rel, name, ruleOf(name), what)
	}
	return err
}

func (g *gatherer) read(e *Entry, at string) {
	if e.Kind == beneath.Link {
		text, err := g.root.Readlink(at)
		e.text, e.read = text, err == nil
		return
	}
	limit := int64(textLimit)
	if e.Name == "index" || strings.HasPrefix(e.Name, "sharedindex") {
		return
	}
	content, err := g.root.Read(at, limit)
	if errors.Is(err, fs.ErrPermission) && g.open {
		_ = g.root.Chmod(at, 0o644)
		content, err = g.root.Read(at, limit)
	}
	e.text, e.read = string(content), err == nil
	if e.Name == "gitdir" {
		e.back = backOf(g.abs(path.Dir(at)), e.text)
	}
}

// backOf reads the .git file that a gitdir names, wherever it is: only who may
// write there can have it lead back.
func backOf(folder, text string) string {
	file, ok := leadsTo(folder, strings.TrimRight(text, "\n"))
	if !ok || path.Base(file) != ".git" {
		return ""
	}
	content, err := beneath.ReadIn(path.Dir(file), ".git", textLimit)
	if err != nil {
		return ""
	}
	to, ok := File{Path: file, text: string(content)}.target()
	if !ok {
		return ""
	}
	return to
}

// files notes the files of a folder with a rule for each.
func (g *gatherer) files(f *Folder, rel, dir string) error {
	list, err := g.list(path.Join(rel, dir))
	if errors.Is(err, beneath.ErrTooLarge) {
		f.odd = append(f.odd, Repair{Do: MoveAside, Rel: path.Join(rel, dir), Why: "there is too much in it"})
		return nil
	}
	for _, n := range list {
		g.note(f, rel, dir+"/"+n.name, ruleOf(dir+"/"+n.name), n.what)
	}
	return err
}

// foreign notes all that lies in a folder of another tool.
func (g *gatherer) foreign(f *Folder, rel, name string) error {
	if g.Before != nil && f.before.entry(name) == nil {
		return nil // goes as a whole
	}
	at := path.Join(rel, name)
	seen := survey.All(g.root, foreignLimit, at)
	for _, file := range seen.Files {
		if file.Kind != beneath.Dir {
			below := strings.TrimPrefix(file.Rel, strings.TrimPrefix(rel+"/", "./"))
			f.Entries = append(f.Entries, Entry{Name: below, Kind: file.Kind, Stamp: file.Stamp})
		}
	}
	return nil
}

// places looks at the git folders in modules/ and worktrees/. A submodule's
// name may hold slashes, so a folder that is none is looked into.
func (g *gatherer) places(f *Folder, at, name string, depth int) error {
	list, err := g.list(at)
	if errors.Is(err, beneath.ErrTooLarge) {
		f.odd = append(f.odd, Repair{Do: MoveAside, Rel: at, Why: "there is too much in it"})
		return nil
	}
	for _, n := range list {
		if err == nil && ruleOf(n.name).sort != ours {
			err = g.inner(f, path.Join(at, n.name), name, depth)
		}
	}
	return err
}

func (g *gatherer) inner(f *Folder, at, name string, depth int) error {
	what, err := g.look(at)
	if err != nil {
		return err
	}
	rel := strings.TrimPrefix(g.abs(at), f.Path+"/")
	switch {
	case what.Kind == beneath.Regular:
		if g.Before != nil && what.Stamp.Change >= g.Since {
			f.odd = append(f.odd, Repair{Do: MoveAside, Rel: at, Why: "git makes no file there"})
		}
		return nil
	case what.Kind != beneath.Dir:
		f.Entries = append(f.Entries, Entry{Name: rel, Kind: what.Kind, Stamp: what.Stamp})
		return nil
	case name == "worktrees":
		return g.folder(at, f.rel, Linked, depth-1)
	case g.isGitFolder(at):
		return g.folder(at, f.rel, Whole, depth-1)
	case depth == 1:
		f.odd = append(f.odd, Repair{Do: MoveAside, Rel: at, Why: "it lies too deep"})
		return nil
	}
	return g.places(f, at, name, depth-1)
}

// isGitFolder tells a git folder from a part of a name. One sign is enough: the
// agent may put the others back in a later session.
func (g *gatherer) isGitFolder(rel string) bool {
	for _, sign := range []string{"HEAD", "config", "hooks", "commondir", "objects", "refs"} {
		if what, err := g.look(path.Join(rel, sign)); err != nil || what.Kind != beneath.Absent {
			return true
		}
	}
	return false
}

// deep looks, after a session, at what lies in folders with any number of
// files: there are no links, pipes and sockets in them, no locks, and no git
// places.
func (g *gatherer) deep(f *Folder, rel string) error {
	if g.Before == nil {
		return nil
	}
	var trees []string
	for _, e := range f.Entries {
		switch rule := ruleOf(e.Name); {
		case e.Kind != beneath.Dir:
		case rule.sort == store:
			g.objects(f, rel, f.before.entry(e.Name))
		case rule.sort == tree || rule.sort == kept:
			trees = append(trees, path.Join(rel, e.Name))
		case rule.sort == ours:
			g.strays(f, wholeWalk(g.root, []string{path.Join(rel, e.Name)}))
		}
	}
	if len(trees) == 0 {
		return nil
	}
	return g.trees(f, trees)
}

// trees looks at every file below folders.
func (g *gatherer) trees(f *Folder, from []string) error {
	seen := openWalk(g.root, survey.Question{From: from, Wanted: survey.Everything, Limit: 2_000_000})
	if seen.Cut || len(seen.Closed) > 0 {
		return errors.New("cannot look at all of " + g.abs(from[0]))
	}
	for _, file := range seen.Files {
		switch {
		case file.Kind == beneath.Link || file.Kind == beneath.Special:
			f.odd = append(f.odd, Repair{Do: MoveAside, Rel: file.Rel, Why: writesThrough})
		case file.Kind != beneath.Dir && file.Stamp.Change >= g.Since &&
			strings.HasPrefix(file.Rel, path.Join(f.rel, "refs/replace")+"/"):
			f.replaces = true
		case strings.HasSuffix(file.Rel, ".lock") && file.Kind == beneath.Regular && file.Stamp.Change >= g.Since:
			f.odd = append(f.odd, Repair{Do: MoveAside, Rel: file.Rel, Why: StaysLocked})
		}
	}
	g.strays(f, seen)
	return nil
}

// strays has git take what lies where it puts no repository for none.
func (g *gatherer) strays(f *Folder, seen *survey.Survey) {
	for _, stray := range seen.Bare {
		if g.touched(stray) {
			f.odd = append(f.odd, Repair{Do: Disarm, Rel: stray, Why: strayPlace})
		}
	}
	for _, stray := range seen.Git {
		if g.touched(stray) {
			f.odd = append(f.odd, Repair{Do: Rename, Rel: stray, Why: strayPlace})
		}
	}
}

const (
	writesThrough = "git would write through it"
	// StaysLocked is why a lock may not stay when nobody is there to take it away.
	StaysLocked = "git would wait for whoever made it"
	strayPlace  = "git puts no repository there"
)

// touched reports whether something of a git folder by which git decides what
// it does was changed since the session began. No program can set the time of
// change.
func (g *gatherer) touched(rel string) bool { return Touched(g.root, rel, g.Since) }

// Touched reports whether a git place was changed since a time, in nanoseconds
// since 1970: what git does with it, not what it keeps in it. A git place, a link
// or a pipe among that is a change whenever it was made: git makes none there.
func Touched(root *beneath.Folder, rel string, since int64) bool {
	what, err := root.Look(rel)
	if err != nil || what.Stamp.Change >= since {
		return true
	}
	if what.Kind != beneath.Dir {
		return false
	}
	keeps := []string{"objects", "refs", "logs"}
	isKept := func(folder string) bool {
		return slices.ContainsFunc(strings.Split(strings.TrimPrefix(folder, rel), "/"),
			func(name string) bool { return slices.Contains(keeps, name) })
	}
	const limit = 50_000
	seen := survey.Walk(root, survey.Question{
		From: []string{rel}, Limit: limit, LinksSince: 1,
		Wanted: func(folder string) func([]byte, bool) bool {
			if isKept(folder) {
				return nil
			}
			return survey.Everything(folder)
		},
	}, nil)
	odd := slices.Clone(seen.NewLinks)
	for _, f := range seen.Files {
		odd = append(odd, f.Rel)
	}
	return slices.ContainsFunc(slices.Concat(seen.Git, seen.Bare), isKept) ||
		slices.ContainsFunc(odd, func(at string) bool { return isKept(path.Dir(at)) }) ||
		seen.ChangedSince(since, isKept)
}

// objects looks at the folders of objects that were changed. Git makes only
// files in them, and deletes and writes behind a link.
func (g *gatherer) objects(f *Folder, rel string, before *Entry) {
	at := path.Join(rel, "objects")
	list, err := g.list(at)
	if err != nil {
		f.odd = append(f.odd, Repair{Do: Disarm, Rel: rel, Why: "its objects cannot be looked at"})
		return
	}
	what, err := g.look(at)
	same := err == nil && before != nil && before.Stamp.Ino == what.Stamp.Ino
	for _, n := range list {
		g.object(f, path.Join(at, n.name), n.what, same, 1)
	}
}

// object looks at one name below objects/; same: the folder that it is in was
// there before.
func (g *gatherer) object(f *Folder, at string, what beneath.Entry, same bool, depth int) {
	name := path.Base(at)
	// What is in these two may have changed deeper.
	deeper := name == "info" || name == "pack"
	switch {
	case same && what.Stamp.Change < g.Since && !deeper:
		return
	case !isObjects(name, what.Kind, depth):
		f.odd = append(f.odd, Repair{Do: MoveAside, Rel: at, Why: "git makes none of this name there"})
		return
	case what.Kind == beneath.Regular:
		return
	case what.Kind != beneath.Dir:
		f.odd = append(f.odd, Repair{Do: MoveAside, Rel: at, Why: writesThrough})
		return
	}
	list, err := g.list(at)
	if err != nil {
		f.odd = append(f.odd, Repair{Do: MoveAside, Rel: at, Why: "it cannot be looked at"})
		return
	}
	for _, n := range list {
		g.object(f, path.Join(at, n.name), n.what, false, depth+1)
	}
}

// isObjects reports whether git makes a name below objects/. No file there is
// called as one by which a folder is a repository, or that sends others elsewhere.
func isObjects(name string, kind beneath.Kind, depth int) bool {
	switch {
	case kind != beneath.Dir:
		return !slices.Contains([]string{".git", "head", "commondir", "config", "refs", "objects", "http-alternates"},
			strings.ToLower(name))
	case depth == 1:
		return name == "info" || name == "pack" || len(name) == 2 && strings.Trim(name, "0123456789abcdef") == ""
	}
	return depth == 2 && (name == "commit-graphs" || name == "multi-pack-index.d")
}
