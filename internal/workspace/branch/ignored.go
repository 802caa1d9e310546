package branch

import (
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/handover"
)

// Entry is a file or folder of the user's that git ignores as a whole.
type Entry struct {
	Path   string // from the project
	Kind   Kind
	Files  int   // in a folder; counting ends beyond [Limits.Files]
	Bytes  int64 // likewise
	Nested bool  // it is a repository of its own
}

// Kind is what an entry is.
type Kind int

const (
	Other Kind = iota // a socket, pipe or device, or gone
	File
	Folder
	Link
)

// How is what becomes of an entry on a branch.
type How int

const (
	LeftOut  How = iota
	Copied       // into the checkout, once
	Overlaid     // seen below a layer of the branch's own
	Covered      // it looks secret: an empty one is there
)

// Part is an entry with what becomes of it.
type Part struct {
	Entry
	How How
	Why string // it is left out; empty: it is not worth a word
}

// Limits say from where on an entry is not copied.
type Limits struct {
	Files      int   // of a folder
	Bytes      int64 // of a folder
	File       int64 // bytes of a file
	Parts      int   // entries at all
	NoOverlays string
}

// limits are those of a launch.
var limits = Limits{Files: 2000, Bytes: 20 << 20, File: 1 << 30, Parts: 2000}

// decide says what becomes of the entries. hidden are paths that the agent does not see.
func decide(entries []Entry, hidden []string, l Limits) (parts []Part) {
	for n, e := range entries {
		p := Part{Entry: e, How: Copied}
		switch {
		case n >= l.Parts:
			p.How, p.Why = LeftOut, "there are too many of them"
		case e.Kind == Other:
			p.How = LeftOut
		case pathname.BelowAny(e.Path, hidden):
			p.How = Covered
		case e.Nested:
			p.How, p.Why = LeftOut, "it is a repository of its own"
		case e.Kind == File && e.Bytes > l.File:
			p.How, p.Why = LeftOut, "it is larger than 1 GiB"
		case e.Kind == Folder && (e.Files > l.Files || e.Bytes > l.Bytes):
			p.How = Overlaid
			if l.NoOverlays != "" {
				p.How, p.Why = LeftOut, l.NoOverlays
			}
		}
		parts = append(parts, p)
	}
	return parts
}

// of returns the paths of the parts of which one thing becomes.
func of(parts []Part, how How) (list []string) {
	for _, p := range parts {
		if p.How == how {
			list = append(list, p.Path)
		}
	}
	return list
}

// Brings reports whether a path of the user's folder is on the branch as it is there: what is ignored and copied or
// overlaid, or all that is changed.
func (b Branch) Brings(rel string) bool {
	return b.Fresh && b.Changes || pathname.BelowAny(path.Join(b.Tree, rel), b.With) ||
		pathname.BelowAny(rel, slices.Concat(of(b.Parts, Copied), of(b.Parts, Overlaid)))
}

// Left lists the parts that are left out with a reason, by that.
func (b Branch) Left() map[string][]string {
	left := map[string][]string{}
	for _, p := range b.Parts {
		if p.How == LeftOut && p.Why != "" {
			left[p.Why] = append(left[p.Why], p.Path)
		}
	}
	return left
}

// Said says, for people, what becomes of what is ignored.
func (b Branch) Said() string {
	var texts []string
	for _, kind := range []struct {
		how  How
		text string
	}{{Overlaid, "yours below a layer of the branch's own: "}, {Copied, "copied: "}, {Covered, "empty inside: "}} {
		if paths := of(b.Parts, kind.how); len(paths) > 0 {
			texts = append(texts, kind.text+diag.Some(paths, 3))
		}
	}
	return strings.Join(texts, "; ")
}

// Layer is a folder of the user's that is seen below a layer of the branch's own.
type Layer struct{ Path, Above string } // from the project; the layer's folder on the host

// Layers are the folders that are overlaid.
func (b Branch) Layers() (list []Layer) {
	for _, at := range of(b.Parts, Overlaid) {
		list = append(list, Layer{at, b.Dir + "/closed/layers/" + handover.Name(at)})
	}
	return list
}

// isPlain reports whether a path that git prints is one in the project, and in no git folder.
func isPlain(at string) bool {
	return at != "" && path.Clean("/"+at) == "/"+at && !slices.ContainsFunc(strings.Split(at, "/"), git.IsDotGit)
}
