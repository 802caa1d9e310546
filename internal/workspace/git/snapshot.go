// Package git says what the host's git obeys in a git folder, and what of it
// may stay when an agent had the folder.
//
// A git place is a folder or file that git takes for a repository or a pointer
// to one. [Gather] looks at all places below a folder, before a session and
// after it, by the same rules. [Review] compares the two and gives the repairs;
// it is a function of values. [Mender] applies them.
//
// The rule is default deny. A name in a git folder stays if it was there before
// and is the same file still, or if the table knows it and its content obeys
// its grammar. All else goes aside: what is not in the table, too. What an agent
// made is judged like what was the user's, with nothing there before.
//
// The package runs no git: that would obey what is to be taken out.
package git

import (
	"crypto/sha256"
	"encoding/binary"
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
	Own     []Sum    // of the settings in its configurations
	Closed  []string // names in it that could not be looked at, or "." for itself
	Ignores []string // before a session: the rules of its info/exclude
	Rel     string   // of the folder, below the root that it was seen from
	In      string   // of the git folder that it lies in; empty: none
	odd     []Repair // repairs that were found to be needed while looking
	samples []Entry  // of hooks
	secrets []Secret // before a session
	apart   []string // working trees that lie in it, below the root
	// replaces says that refs by which git shows other commits were made since the session began.
	replaces bool
	before   *Folder // the same one before the session; nil: it was not there
}

// Entry is one name in a git folder. Text is what a file holds, or a link leads
// to; it is read only where it is judged, and never written down.
type Entry struct {
	Name  string // below the git folder
	Kind  beneath.Kind
	Stamp beneath.Stamp
	text  string
	read  bool
	back  string // of a gitdir file that names a .git file outside the root: where that leads
	// hashSize is the length of object names in an index that was changed since the look before.
	hashSize int
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
	text string
	read bool
}

// Sum is a hash of one setting of a configuration: some settings are secret.
type Sum struct{ A, B uint64 }

func sumOf(e gitconfig.Entry) Sum {
	bare := "="
	if e.Bare {
		bare = ""
	}
	h := sha256.Sum256([]byte(e.Key() + "\x00" + bare + e.Value))
	return Sum{binary.BigEndian.Uint64(h[:8]), binary.BigEndian.Uint64(h[8:16])}
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

// Text returns what a file holds, and whether it was read. Before a session, configurations are read, files that lead
// elsewhere, and the lock of a worktree. An entry that does not exist was not read.
func (e *Entry) Text() (text string, read bool) {
	if e == nil {
		return "", false
	}
	return e.text, e.read
}

// Settings returns the settings of a configuration, up to the first line that cannot be read.
func (e *Entry) Settings() []gitconfig.Entry {
	if e == nil {
		return nil
	}
	entries, _ := gitconfig.Parse([]byte(e.text))
	return entries
}

// sums returns one Sum for each setting.
func (e *Entry) sums() (sums []Sum) {
	for _, s := range e.Settings() {
		sums = append(sums, sumOf(s))
	}
	return sums
}

// isIndex reports whether it is an index, which [CheckIndex] judges.
func (e *Entry) isIndex() bool { return e.Name == "index" || strings.HasPrefix(e.Name, sharedIndex) }

// sharedIndex is how the name of the file begins that an index was split from.
const sharedIndex = "sharedindex."

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
		}
	}
	return f
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
	back, _ := folder.Entry("gitdir").Text()
	at, _ := dotGit(to, back)
	return at != f.Path
}

// target returns the folder that a .git file names; empty: it names none. It is not ok if the kernel may follow the
// path to another one.
func (f File) target() (to string, ok bool) {
	text, found := strings.CutPrefix(f.text, "gitdir: ")
	if !found {
		return "", true
	}
	return leadsTo(path.Dir(f.Path), strings.TrimRight(text, "\r\n"))
}
