package project

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/placeholder"
)

// guard collects the mounts that keep named places below one folder from
// being changed.
type guard struct {
	o  *opener
	at *beneath.Folder
}

// add puts down one mount. The first one at a path stays, but that a secret is
// covered goes before that it cannot be written to.
func (g guard) add(m Mount, rel string) {
	m.Path, m.Root = g.at.Join(rel), g.at.Path()
	have := func(other Mount) bool {
		return other.Path == m.Path && other.Mode != Pin && !(other.Mode == ReadOnly && m.Mode == Hidden)
	}
	if slices.ContainsFunc(g.o.Mounts, have) {
		return
	}
	g.o.Mounts = slices.DeleteFunc(g.o.Mounts, func(other Mount) bool { return other.Path == m.Path })
	g.o.Mounts = append(g.o.Mounts, m)
}

// pin keeps a folder and all above it from being renamed away with what is
// mounted in them: a mount pins only itself, not its parents.
func (g guard) pin(rel, why string) {
	for ; rel != "." && rel != ""; rel = path.Dir(rel) {
		here := g.at.Join(rel)
		if !slices.ContainsFunc(g.o.Mounts, func(m Mount) bool { return m.Path == here }) {
			g.o.Mounts = append(g.o.Mounts, Mount{Path: here, Root: g.at.Path(), Mode: Pin, Dir: true, Why: why})
		}
	}
}

// readOnly protects what lies at rel, which is no link.
func (g guard) readOnly(rel string, kind beneath.Kind, why string) {
	g.pin(path.Dir(rel), why)
	g.add(Mount{Mode: ReadOnly, Dir: kind == beneath.Dir, Why: why}, rel)
}

// made covers a file with content.
func (g guard) made(rel string, content []byte, why string) {
	g.pin(path.Dir(rel), why)
	g.add(Mount{Mode: Made, Content: content, Why: why}, rel)
}

// placeholder protects a place where nothing is: it will be made by
// [Project.Hold] and taken away again.
func (g guard) placeholder(p placeholder.Placeholder, why string) {
	p.Root = g.at.Path()
	g.o.placeholders = append(g.o.placeholders, p)
	g.pin(path.Dir(p.Rel), why)
	g.add(Mount{Mode: ReadOnly, Dir: p.Dir, Why: why}, p.Rel)
}

// existing protects a place if something is there.
func (g guard) existing(rel, why string) error {
	what, err := g.look(rel)
	if err != nil {
		return err
	}
	g.keep(rel, what.Kind, why)
	return nil
}

// look says what lies at rel. A folder that keeps it from being known is hidden,
// and nothing is in it then.
func (g guard) look(rel string) (beneath.Entry, error) {
	what, err := g.at.Look(rel)
	dir := path.Dir(rel)
	switch {
	case err == nil, errors.Is(err, unix.ENAMETOOLONG): // nobody can name it
		return what, nil
	case !errors.Is(err, fs.ErrPermission) || dir == ".":
		return what, &diag.Error{
			Op: "protect " + g.at.Join(rel), Err: err, Remedy: "make it readable for you, or remove it",
		}
	}
	for what, err := g.at.Look(dir); err != nil || what.Kind != beneath.Dir; what, err = g.at.Look(dir) {
		dir = path.Dir(dir) // the one that is closed lies further up
	}
	g.closed(dir)
	return beneath.Entry{}, nil
}

// closed hides a folder that cannot be looked into: the agent could open it, and
// nobody would know what it did there.
func (g guard) closed(rel string) {
	g.pin(path.Dir(rel), whyClosed)
	g.add(Mount{Mode: Hidden, Dir: true, Why: whyClosed}, rel)
	if text := g.at.Join(rel) + " cannot be read, and is hidden inside"; !slices.Contains(g.o.Notes, Note{Text: text}) {
		g.o.note(false, text)
	}
}

// keep protects what is known to lie at a place.
func (g guard) keep(rel string, kind beneath.Kind, why string) {
	switch kind {
	case beneath.Absent:
	case beneath.Link:
		g.link(rel, why)
	default:
		g.readOnly(rel, kind, why)
	}
}

// link deals with a protected place that is a symbolic link, or lies behind
// one. A link cannot be mounted over; what it points at can, when that lies
// in the same folder, but the agent can put another link in its place.
func (g guard) link(rel, why string) {
	g.o.note(true, g.at.Join(rel)+" is a link: the agent can replace it, so look at it before the host uses it")
	text, err := g.at.Readlink(rel)
	if err != nil || path.IsAbs(text) {
		return // behind another link, or outside: the note has said it
	}
	target := path.Join(path.Dir(rel), text)
	what, err := g.at.Look(target)
	if err == nil && (what.Kind == beneath.Regular || what.Kind == beneath.Dir) && target != "." &&
		!strings.HasPrefix(target, "..") {
		g.readOnly(target, what.Kind, why)
	}
}

// finish orders the mounts, a shorter path before a longer one. Below a folder
// that is hidden there is nothing to mount over.
func (o *opener) finish() {
	var hidden []string
	for _, m := range o.Mounts {
		if m.Mode == Hidden && m.Dir {
			hidden = append(hidden, m.Path)
		}
	}
	below := func(file string) bool {
		return slices.ContainsFunc(hidden, func(dir string) bool { return file != dir && pathname.Below(file, dir) })
	}
	o.Mounts = slices.DeleteFunc(o.Mounts, func(m Mount) bool { return below(m.Path) })
	o.Hidden = slices.DeleteFunc(o.Hidden, func(rel string) bool { return below(o.tree.Join(rel)) })
	slices.SortFunc(o.Mounts, func(a, b Mount) int { return strings.Compare(a.Path, b.Path) })
}
