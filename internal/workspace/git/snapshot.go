// Package git looks at what the host's git takes for a repository below a folder, before a session and after it.
//
// A git place is a folder or file that git takes for a repository or a pointer to one. [Gather] looks at those that are
// there. [Strangers] compares two looks: what is new, or changed where git obeys it, was made by an agent, and git
// is to find it no more. No content decides that, only that it is not what was there. [Mender] takes it out of git's
// reach, by one new name. [Discover] and [ReadDotGit] find the repository that a folder lies in, as git does.
//
// The package runs no git: that would obey what is to be taken out.
package git

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/gitconfig"
)

// Snapshot lists the git folders and .git files below a folder at one moment. To the zero value, everything is new.
type Snapshot struct {
	Folders []Folder
	Files   []File
	Named   []File // what the user's own configuration makes git obey in any working tree
}

// Role is what a git folder is to git.
type Role int

const (
	Whole  Role = iota // named .git, below modules/, or a repository whose folder holds nothing else
	Bare               // has a name of its own, and perhaps other things in it
	Linked             // the part of a linked worktree, below worktrees/
)

// Folder is one git folder, as far as git decides anything by it.
type Folder struct {
	Path    string // absolute
	Role    Role
	Entries []Entry
	Closed  []string // names in it that could not be looked at, or "." for itself
	Rel     string   // of the folder, below the root that it was seen from
	In      string   // of the git folder that it lies in; empty: none
	samples []Entry  // of hooks
	secrets []Secret // before a session
	apart   []string // working trees that lie in it, below the root
	odd     bool     // there is something in it where git makes nothing of the kind
}

// Entry is one name in a git folder. Text is what a file holds, or a link leads
// to; it is read only where it is judged, and never written down.
type Entry struct {
	Name  string // below the git folder
	Kind  beneath.Kind
	Stamp beneath.Stamp
	text  string
	read  bool
}

// File is an entry named .git that is no folder.
type File struct {
	Path  string
	Kind  beneath.Kind
	Stamp beneath.Stamp
	Rel   string // below the root
	// Led says that the place which it names lies behind a link below the root. Who may exchange that link can lead git
	// elsewhere.
	Led  bool
	back bool // the git folder that it names says that this is its working tree
	text string
	read bool
}

// Folder returns the folder at a path; nil: there is none.
func (s Snapshot) Folder(at string) *Folder {
	for i := range s.Folders {
		if s.Folders[i].Path == at {
			return &s.Folders[i]
		}
	}
	return nil
}

func (s Snapshot) file(at string) *File { return fileIn(s.Files, at) }

func fileIn(files []File, at string) *File {
	if i := slices.IndexFunc(files, func(f File) bool { return f.Path == at }); i >= 0 {
		return &files[i]
	}
	return nil
}

// Has reports whether a path is among Folders and Files.
func (s Snapshot) Has(at string) bool { return s.Folder(at) != nil || s.file(at) != nil }

// Without returns the snapshot without the places for which drop is true.
func (s Snapshot) Without(drop func(at string) bool) Snapshot {
	file := func(f File) bool { return drop(f.Path) }
	return Snapshot{
		slices.DeleteFunc(slices.Clone(s.Folders), func(f Folder) bool { return drop(f.Path) }),
		slices.DeleteFunc(slices.Clone(s.Files), file), slices.DeleteFunc(slices.Clone(s.Named), file),
	}
}

// And returns the places of both snapshots.
func (s Snapshot) And(other Snapshot) Snapshot {
	return Snapshot{
		slices.Concat(s.Folders, other.Folders), slices.Concat(s.Files, other.Files),
		slices.Concat(s.Named, other.Named),
	}
}

// Text returns what a file holds, if it is read: configurations are, files that lead elsewhere, and the lock of a
// worktree.
func (e *Entry) Text() string {
	if e == nil {
		return ""
	}
	return e.text
}

// Settings returns the settings of a configuration, up to the first line that cannot be read.
func (e *Entry) Settings() []gitconfig.Entry {
	if e == nil {
		return nil
	}
	entries, _ := gitconfig.Parse([]byte(e.text))
	return entries
}

// Foreign returns the names in the git folder that are not git's, but for those of checkouts.
func (f *Folder) Foreign() (names []string) {
	for _, e := range f.Entries {
		if !strings.Contains(e.Name, "/") && !isGits(e.Name) && !slices.Contains(f.apart, path.Join(f.Rel, e.Name)) {
			names = append(names, e.Name)
		}
	}
	return names
}

// Entry returns the entry of a name in the git folder; nil: there is none.
func (f *Folder) Entry(name string) *Entry {
	if f == nil {
		return nil
	}
	for i := range f.Entries {
		if f.Entries[i].Name == name {
			return &f.Entries[i]
		}
	}
	return nil
}

// same reports whether an entry is what it was before.
func (e Entry) same(before *Entry) bool {
	return before != nil && before.Kind == e.Kind && before.Stamp == e.Stamp
}

// leadsTo returns where a path leads that stands in a file of a folder. Not ok: the kernel may go elsewhere than the
// text says, for behind a link ".." is not what stands before it, and C ends a text at a NUL.
func leadsTo(folder, text string) (to string, ok bool) {
	ok = text != "" && path.Clean(text) == strings.TrimSuffix(text, "/") && !strings.ContainsRune(text, 0)
	if !filepath.IsAbs(text) {
		text = folder + "/" + text
	}
	return path.Clean(text), ok
}

// dotGit returns the .git file that a gitdir file in a folder names. Not ok: it is named otherwise, or the kernel may
// go elsewhere.
func dotGit(folder, gitdir string) (file string, ok bool) {
	file, ok = leadsTo(folder, strings.TrimRight(gitdir, "\n"))
	return file, ok && path.Base(file) == ".git"
}

// dotGitFile looks at a .git file.
func (r reader) dotGitFile(rel string, what beneath.Entry) File {
	f := File{Path: r.abs(rel), Kind: what.Kind, Stamp: what.Stamp, Rel: rel}
	if what.Kind == beneath.Regular {
		f.text, f.read = r.read(rel, f.Kind)
		to, _ := f.target()
		if below, in := strings.CutPrefix(to, r.root.Path()+"/"); in {
			at, err := r.look(below)
			f.Led = err == nil && at.Kind == beneath.Link
			f.back = !f.Led && r.leadsBack(below, f.Path)
		}
	}
	return f
}

// leadsBack reports whether a git folder says that its working tree has the .git file at a path: that of a worktree by
// its gitdir, that of a submodule by core.worktree.
func (r reader) leadsBack(folder, file string) bool {
	if text, read := r.read(folder+"/gitdir", beneath.Regular); read {
		at, _ := dotGit(r.abs(folder), text)
		return at == file
	}
	text, _ := r.read(folder+"/config", beneath.Regular)
	settings, err := gitconfig.Parse([]byte(text))
	return err == nil && slices.ContainsFunc(settings, func(s gitconfig.Entry) bool {
		at, ok := leadsTo(r.abs(folder), s.Value)
		return s.Top() == "core" && s.Name == "worktree" && ok && at == path.Dir(file)
	})
}

// Astray reports whether the entry called .git at rel is a file that leads git through a link, or to a folder that was
// there before and belongs to another checkout. A session can make this true without changing the file: by moving the
// folder that it is in, or by exchanging the link.
func (s Snapshot) Astray(root *beneath.Folder, rel string) bool {
	what, err := root.Look(rel)
	f := reader{root, false}.dotGitFile(rel, what)
	to, _ := f.target()
	folder := s.Folder(to)
	if err != nil || folder == nil {
		return f.Led
	}
	back := folder.Entry("gitdir").Text()
	at, _ := dotGit(to, back)
	return at != f.Path
}

// Leads returns the folder that a .git file names; empty: it names none, or the kernel may go elsewhere.
func (f File) Leads() string {
	if to, ok := f.target(); ok {
		return to
	}
	return ""
}

// LeadsTo returns the folder that a .git file at a path names by its text, see [File.Leads].
func LeadsTo(at, text string) string { return File{Path: at, text: text}.Leads() }

// target returns the folder that a .git file names; empty: it names none. It is not ok if the kernel may follow the
// path to another one.
func (f File) target() (to string, ok bool) {
	text, found := strings.CutPrefix(f.text, "gitdir: ")
	if !found {
		return "", true
	}
	return leadsTo(path.Dir(f.Path), strings.TrimRight(text, "\r\n"))
}
