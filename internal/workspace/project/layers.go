package project

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/survey"
)

const whyClosed = "it cannot be looked at"

// layers are what is to be laid over the places of a project, and what a person
// is told of them. Paths in its lists are relative to the project.
type layers struct {
	project      string // its path
	mounts       []Mount
	standIns     []StandIn
	notes        []Note
	hidden, stay []string // see [Project]
	copied       []string // configurations and logs of git that a copy without secrets covers
	judged       []string // git folders in which all that is secret is covered
}

func (l *layers) note(red bool, format string, args ...any) {
	if n := (Note{fmt.Sprintf(format, args...), red}); !slices.Contains(l.notes, n) {
		l.notes = append(l.notes, n)
	}
}

// sorted gives the mounts, a shorter path before a longer one, and what of them
// hides something in the project. Below a folder that is hidden there is nothing
// to mount over.
func (l *layers) sorted() (mounts []Mount, hidden []string) {
	var closed []string
	for _, m := range l.mounts {
		if m.Mode == Hidden && m.Dir {
			closed = append(closed, m.Path)
		}
	}
	below := func(file string) bool {
		return slices.ContainsFunc(closed, func(dir string) bool { return file != dir && pathname.Below(file, dir) })
	}
	mounts = slices.DeleteFunc(l.mounts, func(m Mount) bool { return below(m.Path) })
	slices.SortFunc(mounts, func(a, b Mount) int { return strings.Compare(a.Path, b.Path) })
	hidden = slices.DeleteFunc(l.hidden, func(rel string) bool { return below(path.Join(l.project, rel)) })
	slices.Sort(hidden)
	return mounts, slices.Compact(hidden)
}

// below puts down layers for places below one folder.
type below struct {
	*layers
	at *beneath.Folder
}

// add puts down one mount. The first one at a path stays, but that a secret is
// covered goes before that it cannot be written to.
func (b below) add(rel string, m Mount) {
	m.Path, m.Root = b.at.Join(rel), b.at.Path()
	have := func(other Mount) bool {
		return other.Path == m.Path && other.Mode != Pin && !(other.Mode == ReadOnly && m.Mode == Hidden)
	}
	if slices.ContainsFunc(b.mounts, have) {
		return
	}
	b.mounts = slices.DeleteFunc(b.mounts, func(other Mount) bool { return other.Path == m.Path })
	b.mounts = append(b.mounts, m)
}

// pin keeps a folder and all above it from being renamed away with what is
// mounted in them: a mount pins only itself, not its parents.
func (b below) pin(rel, why string) {
	for ; rel != "." && rel != ""; rel = path.Dir(rel) {
		here := b.at.Join(rel)
		if !slices.ContainsFunc(b.mounts, func(m Mount) bool { return m.Path == here }) {
			b.mounts = append(b.mounts, Mount{Path: here, Root: b.at.Path(), Mode: Pin, Dir: true, Why: why})
		}
	}
}

// cover puts down one mount, and keeps it where it is.
func (b below) cover(rel string, m Mount) {
	b.pin(path.Dir(rel), m.Why)
	b.add(rel, m)
}

// hide covers a secret file or folder by nothing. It is kept at its path: else it
// could be moved to where no launch looks.
func (b below) hide(rel string, dir bool) {
	b.cover(rel, Mount{Mode: Hidden, Dir: dir, Why: whyHidden})
	if b.at.Path() == b.project {
		b.hidden = append(b.hidden, rel)
	}
}

// standIn protects a place where nothing is: it will be made by
// [Project.Hold] and taken away again.
func (b below) standIn(p StandIn, why string) {
	p.Root = b.at.Path()
	b.standIns = append(b.standIns, p)
	b.cover(p.Rel, Mount{Mode: ReadOnly, Dir: p.Dir, Why: why})
}

// existing protects a place if something is there.
func (b below) existing(rel, why string) error {
	what, err := b.look(rel)
	if err == nil {
		b.keep(rel, what.Kind, why)
	}
	return err
}

// look says what lies at rel. A folder that keeps it from being known is hidden,
// and nothing is in it then.
func (b below) look(rel string) (beneath.Entry, error) {
	what, err := b.at.Look(rel)
	dir := path.Dir(rel)
	switch {
	case err == nil, errors.Is(err, unix.ENAMETOOLONG): // nobody can name it
		return what, nil
	case !errors.Is(err, fs.ErrPermission) || dir == ".":
		return what, &diag.Error{
			Op: "protect " + b.at.Join(rel), Err: err, Remedy: "make it readable for you, or remove it",
		}
	}
	for what, err := b.at.Look(dir); err != nil || what.Kind != beneath.Dir; what, err = b.at.Look(dir) {
		dir = path.Dir(dir) // the one that is closed lies further up
	}
	b.closed(dir)
	return beneath.Entry{}, nil
}

// closed hides a folder that cannot be looked into: the agent could open it, and
// nobody would know what it did there.
func (b below) closed(rel string) {
	b.cover(rel, Mount{Mode: Hidden, Dir: true, Why: whyClosed})
	b.note(false, "%s cannot be read, and is hidden inside", b.at.Join(rel))
}

// keep protects what is known to lie at a place. A link cannot be mounted over;
// what it points at can, when that lies in the same folder, but the agent can put
// another link in its place.
func (b below) keep(rel string, kind beneath.Kind, why string) {
	if kind == beneath.Absent {
		return
	}
	if kind == beneath.Link {
		b.note(true, "%s is a link: the agent can replace it, so look at it before the host uses it", b.at.Join(rel))
		text, err := b.at.Readlink(rel)
		if err != nil || path.IsAbs(text) {
			return // behind another link, or outside: the note has said it
		}
		rel = path.Join(path.Dir(rel), text)
		what, err := b.at.Look(rel)
		kind = what.Kind
		if err != nil || kind != beneath.Regular && kind != beneath.Dir || rel == "." || strings.HasPrefix(rel, "..") {
			return
		}
	}
	b.cover(rel, Mount{Mode: ReadOnly, Dir: kind == beneath.Dir, Why: why})
}

// linked is a guarded file with several names (hard links).
type linked struct {
	mount Mount
	names []string // in the project, as far as they are known
	of    uint64   // how many there are
}

// otherNames guards what else a guarded file is called in the project. A session
// can make hard links of a file before it is one to be guarded: of an `.env`
// that the user then fills in.
func (v *view) otherNames(at below) error {
	guarded := v.linked(at.mounts)
	if len(guarded) == 0 {
		return nil
	}
	for _, f := range everyFile(v.tree) {
		g := guarded[f.Stamp.Ino]
		if g == nil || f.Names < 2 || slices.Contains(g.names, f.Rel) {
			continue
		}
		g.names = append(g.names, f.Rel)
		if len(g.names) > hideLimit {
			return diag.Errorf("guard "+v.tree.Join(g.names[0]), "remove those that you did not make",
				"it has %d other names in the project, %s among them", g.of-1, f.Rel)
		}
		m := g.mount
		if m.Mode == Hidden && v.shown(f.Rel) {
			continue
		}
		at.cover(f.Rel, Mount{Mode: m.Mode, Content: m.Content, Why: m.Why + ", by another name"})
		if m.Mode == Hidden {
			at.hidden = append(at.hidden, f.Rel)
		}
		at.note(true, "%s is %s by another name (a hard link), and guarded like it", v.tree.Join(f.Rel), m.Path)
	}
	for _, g := range guarded {
		if uint64(len(g.names)) < g.of {
			at.note(true, "%s is guarded by the names that it has in the project: it has others elsewhere (hard links)",
				v.tree.Join(g.names[0]))
		}
	}
	return nil
}

// linked gives the guarded files with several names, by their inodes.
func (v *view) linked(mounts []Mount) map[uint64]*linked {
	guarded := map[uint64]*linked{}
	add := func(m Mount, rel string, ino, names uint64) {
		switch g := guarded[ino]; {
		case names < 2:
		case g != nil && g.mount.Mode == Hidden && m.Mode == ReadOnly: // this name is to be hidden, too
		case g == nil, g.mount.Mode == ReadOnly && m.Mode == Hidden:
			guarded[ino] = &linked{mount: m, names: []string{rel}, of: names}
		default:
			g.names = append(g.names, rel)
		}
	}
	for _, m := range mounts {
		rel := relative(v.path, m.Path)
		var st unix.Stat_t
		switch {
		case m.Mode == Pin || !v.contains(m.Path):
		case m.Dir && m.Mode != Hidden: // a change by another name is told when the session ends
		case m.Dir:
			for _, f := range survey.All(v.tree, walkLimit, rel).Files {
				if f.Kind != beneath.Dir { // has a name in each folder within
					add(m, f.Rel, f.Stamp.Ino, f.Names)
				}
			}
		case unix.Fstatat(v.tree.FD(), rel, &st, unix.AT_SYMLINK_NOFOLLOW) == nil:
			add(m, rel, st.Ino, uint64(st.Nlink))
		}
	}
	return guarded
}

// everyFile lists the files of the project, in folders of git and in those that
// tools fill, too. It takes its time, and is for the rare project with a guarded
// file of several names.
func everyFile(tree *beneath.Folder) []survey.File {
	all := survey.All(tree, walkLimitAfter)
	if len(all.Git) == 0 {
		return all.Files
	}
	return append(all.Files, survey.All(tree, walkLimitAfter, all.Git...).Files...)
}
