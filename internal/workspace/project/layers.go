package project

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/guard"
	"claudebox/internal/workspace/handover"
	"claudebox/internal/workspace/survey"
)

const (
	whyClosed = "it cannot be looked at"
	whyPinned = "it is kept in its place: something in it is covered"
)

// layers are the mounts over places of a project, and what a person is told of them. Paths in its lists are relative to
// the project.
type layers struct {
	notes
	project      string           // its path
	own          []string         // see [Request]
	mounts       map[string]Mount // by path
	standIns     []StandIn
	hidden, stay []string         // see [Project]
	copied       []string         // configurations and logs of git that a copy without secrets covers
	searched     []string         // git folders whose secrets were looked for and covered, configurations included
	committed    []string         // secrets that git has
	inner        []handover.Place // see [Project.Places]
	checkouts    []string         // that lie in a git folder which does not enter: their paths
	instead      []Mount          // see [Project.Replaced]
	away         []string         // see [Project.Away]
}

// notes are what a person is told, each once.
type notes []Note

// said is an argument of [notes.note] that is no name of a file.
type said string

// note notes something for the user. An argument that is a text, or a list of texts, is shown as names of files.
func (l *notes) note(red bool, format string, args ...any) {
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			args[i] = diag.Name(arg)
		case []string:
			args[i] = diag.Names(arg)
		}
	}
	if n := (Note{fmt.Sprintf(format, args...), red}); !slices.Contains(*l, n) {
		*l = append(*l, n)
	}
}

// sorted returns the mounts, a shorter path before a longer one, and the hidden places of the project. It leaves out
// what lies below a folder that is hidden, or in a git folder that does not enter.
func (l *layers) sorted() (mounts []Mount, hidden []string) {
	covered := func(file string) bool {
		for dir := path.Dir(file); dir != "/"; dir = path.Dir(dir) {
			if m := l.mounts[dir]; m.Mode == Hidden && m.Dir {
				return true
			}
		}
		return false
	}
	for _, at := range slices.Sorted(maps.Keys(l.mounts)) {
		if !covered(at) && (l.mounts[at].Mode == Inner || !l.isOutside(at)) {
			mounts = append(mounts, l.mounts[at])
		}
	}
	hidden = slices.DeleteFunc(slices.Clone(l.hidden), func(rel string) bool {
		return covered(path.Join(l.project, rel))
	})
	slices.Sort(hidden)
	return mounts, slices.Compact(hidden)
}

// entering returns the stand-ins but for those in git folders that do not enter.
func (l *layers) entering() []StandIn {
	return slices.DeleteFunc(slices.Clone(l.standIns), func(p StandIn) bool {
		return l.isOutside(path.Join(p.Root, p.Rel))
	})
}

// isOutside reports whether a path lies in a git folder that does not enter.
func (l *layers) isOutside(at string) bool {
	for dir := path.Dir(at); dir != "/"; dir = path.Dir(dir) {
		enters := func(tree string) bool { return pathname.Below(at, tree) && pathname.Below(tree, dir) }
		if l.mounts[dir].Mode == Inner {
			return !enters(l.project) && !slices.ContainsFunc(l.checkouts, enters) // those of a bare repository
		}
	}
	return false
}

// below adds mounts for places below one folder.
type below struct {
	*layers
	*beneath.Folder
}

// add adds one mount. The first one at a path stays, but a pin gives way to any other mount, and a read-only mount to
// one that covers a secret. Nothing can be mounted where a path is longer than the kernel takes; only an agent makes
// such paths.
func (b below) add(rel string, m Mount) {
	if m.Path, m.Root = b.Join(rel), b.Path(); len(m.Path) >= unix.PathMax {
		return
	}
	if m.Mode == Inner { // it may be the root itself
		m.Path = path.Clean(m.Path)
	}
	if old, have := b.mounts[m.Path]; !have || old.Mode == Pin ||
		old.Mode == ReadOnly && (m.Mode == Hidden || m.Mode == Made) {
		b.mounts[m.Path] = m
	}
}

// cover adds one mount and pins all folders above: a mount keeps only its own place from being renamed.
func (b below) cover(rel string, m Mount) {
	b.pin(path.Dir(rel))
	b.add(rel, m)
}

// pin keeps a folder, and all above it, from being renamed together with the mounts in it.
func (b below) pin(rel string) {
	for ; rel != "."; rel = path.Dir(rel) {
		if b.mounts[b.Join(rel)].Mode == "" {
			b.add(rel, Mount{Mode: Pin, Dir: true, Why: whyPinned})
		}
	}
}

// hide covers a secret file or folder by an empty one, and pins the folders above it. Otherwise the agent could move it
// to where no later launch looks.
func (b below) hide(rel string, dir bool, why string) {
	b.cover(rel, Mount{Mode: Hidden, Dir: dir, Why: why})
	if b.Path() == b.project {
		b.hidden = append(b.hidden, rel)
	}
}

// standIn protects a path where nothing is. [Project.Hold] makes something there, and takes it away again.
func (b below) standIn(p StandIn, why string) {
	p.Root = b.Path()
	b.standIns = append(b.standIns, p)
	b.cover(p.Rel, Mount{Mode: ReadOnly, Dir: p.Dir, Why: why})
}

// look returns what lies at rel. If a folder on the way cannot be read, look hides that folder, and returns that
// nothing is there.
func (b below) look(rel string) (beneath.Entry, error) {
	if len(b.Join(rel)) >= unix.PathMax {
		return beneath.Entry{}, nil // nothing can be mounted there
	}
	what, err := b.Look(rel)
	dir := path.Dir(rel)
	switch {
	case err == nil:
		return what, nil
	case !errors.Is(err, fs.ErrPermission) || dir == ".":
		return what, &diag.Error{
			Op: "protect " + diag.Name(b.Join(rel)), Err: err, Remedy: "make the project's folder readable for you",
		}
	}
	for what, err := b.Look(dir); err != nil || what.Kind != beneath.Dir; what, err = b.Look(dir) {
		dir = path.Dir(dir) // the one that is closed lies further up
	}
	b.closed(dir)
	return beneath.Entry{}, nil
}

// closed hides a folder that claudebox cannot read. The agent runs as the same user and could change its permissions:
// nobody would know what it then did there.
func (b below) closed(rel string) {
	b.cover(rel, Mount{Mode: Hidden, Dir: true, Why: whyClosed})
	b.note(false, "%s cannot be read, and is hidden inside", b.Join(rel))
}

// makeReadOnly covers a path, at which something of this kind lies, read-only. Nothing can be mounted over a link:
// there it covers what the link leads to at last, if that lies in the same folder. The agent can still replace the
// link.
func (b below) makeReadOnly(rel string, kind beneath.Kind, why string) {
	if kind == beneath.Absent {
		return
	}
	isHeld := func(own string) bool { return guard.IsLink(guard.Stops(own), b.Folder, rel) }
	if kind == beneath.Link && slices.ContainsFunc(b.own, isHeld) {
		return // what another session holds back: it leads nowhere
	}
	if kind == beneath.Link {
		b.note(true, "%s is a link: the agent can replace it, so look at it before the host uses it", b.Join(rel))
		real := beneath.LeadsOrClean(b.Join(rel))
		if real == b.Path() || !pathname.Below(real, b.Path()) {
			return // the note has said it
		}
		rel = relative(b.Path(), real)
		what, err := b.Look(rel)
		kind = what.Kind
		if err != nil || kind != beneath.Regular && kind != beneath.Dir {
			return
		}
	}
	b.cover(rel, Mount{Mode: ReadOnly, Dir: kind == beneath.Dir, Why: why})
}

// ErrUnfound is why a launch is refused: a secret file has hard links that were not found, and so are not covered.
var ErrUnfound = errors.New("the agent could read it by one that was not found")

// manyNamed is a covered file with several names (hard links).
type manyNamed struct {
	mount Mount
	names []string // paths, as far as they are known
	links uint64   // how many there are
	homes bool     // one that is not among these is a secret of the user's home
}

// otherNames covers the other names that a covered file has in the project and the common folder. A session can make
// hard links of a file before it is covered: of an `.env` that the user fills in later.
func (v *view) otherNames() error {
	covered := v.manyNamed()
	if len(covered) == 0 {
		return nil
	}
	for _, at := range []below{v.tree, v.common} {
		if at.Folder == nil {
			continue
		}
		for _, f := range everyFile(at.Folder) {
			g := covered[f.Stamp.Ino]
			if g == nil || f.Names < 2 || slices.Contains(g.names, at.Join(f.Rel)) {
				continue
			}
			g.names = append(g.names, at.Join(f.Rel))
			if len(g.names) > HideLimit {
				return diag.Errorf("guard "+diag.Name(g.names[0]), "remove those that you did not make",
					"it has %d other names (hard links), %s among them", g.links-1, diag.Name(f.Rel))
			}
			m := g.mount // `show` does not count here: the agent may have chosen this name
			at.cover(f.Rel, Mount{Mode: m.Mode, Content: m.Content, Why: m.Why + ", by another name"})
			if m.Mode == Hidden && at == v.tree {
				v.hidden = append(v.hidden, f.Rel)
			}
			v.note(true, "%s is %s by another name (a hard link), and guarded like it", at.Join(f.Rel), m.Path)
		}
	}
	for _, inode := range slices.Sorted(maps.Keys(covered)) {
		covered[inode].homes = v.isOfHome(inode)
		if err := v.unfound(covered[inode]); err != nil {
			return err
		}
	}
	return nil
}

// unfound judges a covered file some of whose names were not found. If it is secret, that is an error: those names are
// not covered, and the agent may have made one so deep that no path leads there. It is only a note if the file is not
// secret, or was covered with its folder in .git or where tools fill: there git and package managers make hard links.
func (v *view) unfound(g *manyNamed) error {
	file, known := g.names[0], uint64(len(g.names))
	if g.homes {
		known++
	}
	switch {
	case known >= g.links:
		return nil
	case !slices.Contains([]string{whyHidden, whyAsked, whySecrets}, g.mount.Why),
		g.mount.Dir && !Searched(relative(g.mount.Root, file)):
		v.note(true, "%s has %d names (hard links), and is guarded by those that were found: %s",
			file, g.links, g.names)
		return nil
	}
	remedy := "remove its other names, or replace it by a copy"
	if g.homes { // nothing may empty it
		remedy = "remove " + diag.Name(file) + ", and its other names but that in your home"
	} else if at, name := diag.Word(v.path), diag.Word(file); at != "" && name != "" {
		remedy = "`find " + at + " -samefile " + name + "` finds those in the project, to be removed; or `F=" + name +
			`; cp -p "$F" "$F.new" && : >"$F" && mv "$F.new" "$F"` + "` leaves the others with nothing in them"
	}
	return diag.Errorf("hide "+diag.Name(file), remedy,
		"it has %d names (hard links), of which %d can be found: %w", g.links, known, ErrUnfound)
}

// manyNamed returns the covered files with several names, by their inodes. A file that is hidden by one name is hidden
// by all.
func (v *view) manyNamed() map[uint64]*manyNamed {
	covered := map[uint64]*manyNamed{}
	mounts, _ := v.sorted()
	first := []Mode{Hidden, Made, ReadOnly}
	slices.SortStableFunc(mounts, func(a, b Mount) int {
		return cmp.Compare(slices.Index(first, a.Mode), slices.Index(first, b.Mode))
	})
	for _, m := range mounts {
		rel := relative(m.Root, m.Path)
		var st unix.Stat_t
		var files []survey.File
		switch {
		case m.Mode == Pin || m.Mode == Inner || m.Mode == Own || m.Root != v.path:
		case m.Dir && m.Mode != Hidden: // a change by another name is in the report
		case m.Dir:
			files = survey.All(v.tree.Folder, walkLimit, rel).Files
		case unix.Fstatat(v.tree.FD(), rel, &st, unix.AT_SYMLINK_NOFOLLOW) == nil:
			files = []survey.File{{Rel: rel, Names: uint64(st.Nlink), Stamp: beneath.Stamp{Ino: st.Ino}}}
		}
		for _, f := range files {
			g := covered[f.Stamp.Ino]
			switch {
			case f.Names < 2 || f.Kind == beneath.Dir: // the link count of a folder counts the folders in it
			case g == nil:
				covered[f.Stamp.Ino] = &manyNamed{mount: m, names: []string{v.tree.Join(f.Rel)}, links: f.Names}
			case g.mount.Mode != Hidden || m.Mode != ReadOnly: // else otherNames hides it
				g.names = append(g.names, v.tree.Join(f.Rel))
			}
		}
	}
	v.ofGit(covered)
	return covered
}

// ofGit adds the files of git folders that do not enter and that have several names: by one of them in the project the
// agent could write there.
func (v *view) ofGit(covered map[uint64]*manyNamed) {
	for _, g := range v.folders {
		if v.mounts[g.Path].Mode != Inner {
			continue
		}
		for _, e := range g.Entries {
			at, st := path.Join(g.Path, e.Name), unix.Stat_t{}
			if e.Kind == beneath.Regular && unix.Lstat(at, &st) == nil && st.Nlink > 1 && covered[st.Ino] == nil {
				m := Mount{Path: at, Mode: ReadOnly, Why: whyConfig}
				covered[st.Ino] = &manyNamed{mount: m, names: []string{at}, links: uint64(st.Nlink)}
			}
		}
	}
}

// everyFile lists the files below a folder, up to [walkLimitAfter], also those in git folders and in folders that tools
// fill. It is slow, and used only if a covered file has several names.
func everyFile(tree *beneath.Folder) []survey.File {
	all := survey.All(tree, walkLimitAfter)
	if len(all.Git) == 0 {
		return all.Files
	}
	return append(all.Files, survey.All(tree, walkLimitAfter, all.Git...).Files...)
}
