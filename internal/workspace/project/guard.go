package project

import (
	"path"
	"slices"
	"strings"

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
func (g guard) readOnly(rel string, what beneath.Entry, why string) {
	g.pin(path.Dir(rel), why)
	g.add(Mount{Mode: ReadOnly, Dir: what.Kind == beneath.Dir, Why: why}, rel)
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
	what, err := g.at.Look(rel)
	if err != nil {
		return g.failed(rel, err)
	}
	switch what.Kind {
	case beneath.Absent:
	case beneath.Link:
		return g.link(rel, why)
	default:
		g.readOnly(rel, what, why)
	}
	return nil
}

// link deals with a protected place that is a symbolic link, or lies behind
// one. A link cannot be mounted over; what it points at can, when that lies
// in the same folder, but the agent can put another link in its place.
func (g guard) link(rel, why string) error {
	g.o.note(true, g.at.Join(rel)+" is a link: the agent can replace it, so look at it before the host uses it")
	text, err := g.at.Readlink(rel)
	if err != nil || path.IsAbs(text) {
		return nil //nolint:nilerr // behind another link, or outside: the note has said it
	}
	target := path.Join(path.Dir(rel), text)
	what, err := g.at.Look(target)
	if err == nil && (what.Kind == beneath.Regular || what.Kind == beneath.Dir) && target != "." &&
		!strings.HasPrefix(target, "..") {
		g.readOnly(target, what, why)
	}
	return nil
}

func (g guard) failed(rel string, err error) error {
	return &diag.Error{Op: "protect " + g.at.Join(rel), Err: err, Remedy: "make it readable for you, or remove it"}
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
