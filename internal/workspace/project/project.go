// Package project says what the sandbox sees of the caller's folder: its
// canonical place, the git folders that belong to it, which of its files the
// host executes and must therefore be read-only inside, which look secret and
// are hidden.
//
// It imports what reads git's files and what walks a project, reads the
// project and what its .git points at, and trusts nothing in either: an agent
// wrote there in earlier sessions. It runs no program (git in a project obeys
// core.fsmonitor), and follows no symbolic link below the project.
//
// [Open] only reads. [Project.Hold] makes the few stand-ins without which
// an absent file would be a way to the host, and takes them away again.
package project

import (
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/identity"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/survey"
)

// Request is what [Open] is asked for. All paths are absolute.
type Request struct {
	Dir string // where the caller stands, or the folder beside the project; links are resolved by Open
	// Beside says that Dir is not the project but a folder that the user gives away read-write beside it: the host's
	// git obeys what is in there, too. What of its repositories lies elsewhere stays there, and its sockets were asked
	// for.
	Beside bool

	Home  string   // the user's home
	UID   int      // of the user
	Own   []string // claudebox's own folders: ~/.claudebox and its XDG ones
	Never []string // paths that no sandbox may see (SAND-09)

	Build          string   // the claudebox that asks, see [Scope]
	GitRoot        bool     // take the root of the repository for the project
	WritableConfig bool     // git: {config: writable}
	Strict         bool     // protect_mode: strict: tracked files are read-only too
	Worktrees      []string // globs of folders beside the project that are given away with it, relative to the project
	Protect        []string // globs of the profile, relative to the project
	Hide, Show     []string // the same with a slash; without one, for the last component
	OwnFiles       []string // profiles and plans that claudebox itself obeys

	UserGit []UserGit // the user's own git configuration, which git obeys in the project

	Memory Memory // what earlier sessions left to be known; never nil
}

// Memory is what is remembered of earlier sessions, and known of those that live, by the identity of files: it is the
// same from any folder. Names are relative to a git folder's working tree.
type Memory interface {
	// Known returns what the last look at the same scope saw; nil if that is not known.
	Known(s Scope) *Seen
	// Filled returns what was found in the folders of a project that tools fill.
	Filled(project string) Filled
	// Pushed returns the names that sessions added to the index of a git folder: they count as untracked.
	Pushed(git identity.ID) []string
	// Left returns files with names of secrets that sessions made and added to the index of a git folder.
	Left(git identity.ID) []Left
	// Hidden returns the names that sessions hid in a repository's working trees: git takes names out of commits.
	Hidden(common identity.ID) []string
	// Doubted reports whether a file of a project may be in an index because of a session that still lives.
	Doubted(project, name string) bool
	// StillHidden returns the files below a folder that were hidden from earlier sessions: those that stay hidden
	// whatever becomes of the reason ([Project.Stay]), and all.
	StillHidden(folder string) (stay, all []string)
	// Inherited replaces, in a snapshot, what lies where sessions live by what was there before them.
	Inherited(seen git.Snapshot) git.Snapshot
}

// Project is a folder that may be given to a sandbox, and what goes with it. Places in it are relative to Path.
type Project struct {
	Path         string  // canonical; mounted read-write at its own path
	Dir          string  // canonical folder where the agent starts, at or below Path
	InstanceRoot string  // canonical root that the state folder is named after (STATE-01)
	Repo         Repo    // zero when the project is in no repository
	Mounts       []Mount // beyond the project itself, a shorter path before a longer one
	Notes        []Note

	Hidden   []string // files and folders that are covered
	Stay     []string // those that stay covered in later sessions, even without the link or repository that showed them
	ReadOnly []string // what cannot be changed inside, without git's own files
	Reported []string // tracked, and executed by the host: writable, but a change is reported
	Tracked  []string // names in git's indexes that no session put there
	Cut      bool     // not all was looked at: the rest is neither hidden nor protected

	Scope      Scope        // what is to be looked at when a session has ended
	Seen       Seen         // what was there
	Filled     Filled       // and in the folders that tools fill
	Before     git.Snapshot // the git places, those of the repository's common folder included
	OpenConfig bool         // their configuration can be changed inside

	StandIns []StandIn // what [Project.Hold] makes
	show     []string
}

// Mode is how a path is mounted over itself.
type Mode string

const (
	// Shared is a folder outside the project that git needs, read-write.
	Shared Mode = "shared"
	// Pin is a folder bound read-write over itself, so that it cannot be
	// renamed away with the read-only mounts that lie in it.
	Pin Mode = "pin"
	// ReadOnly is a file or folder bound read-only over itself.
	ReadOnly Mode = "ro"
	// Made is a file covered by made content, read-only.
	Made Mode = "made"
	// Hidden is a file or folder covered by an empty one, read-only.
	Hidden Mode = "hidden"
)

// Mount is one path, mounted over itself. Root is a canonical folder that
// Path is at or below; below it no link may be followed on the way.
type Mount struct {
	Path    string
	Mode    Mode
	Root    string
	Dir     bool   // a folder, not a file
	Content []byte // of a Made mount
	Why     string
}

// Note is something a person should know before the launch.
type Note struct {
	Text string
	Red  bool // a protection that does not hold, or a host that will execute what is written
}

// Open finds the project of the folder the caller stands in, looks at all of it, and says what is to be laid over it.
// It refuses folders that must not be given away (SAND-05), and a repository whose protection cannot be set up; each
// refusal is a [*diag.Error] with a remedy.
func Open(req Request) (Project, error) {
	dir, err := canonical(req.Dir)
	if err != nil {
		return Project{}, err
	}
	req.Dir, req.Home = dir, canonicalOrClean(req.Home)
	worktree, bare := findRepository(req.Dir, req.Home)
	g := location{Request: req, path: req.Dir, root: req.Dir}
	if worktree != "" && req.GitRoot && !bare && !pathname.Below(req.Dir, worktree+"/.git") {
		g.path, g.root = worktree, worktree
	}
	g.layers = &layers{project: g.path, mounts: map[string]Mount{}}
	if !req.Beside {
		if err := g.checkPlace(); err != nil {
			return Project{}, err
		}
	}
	tree, err := beneath.Open(g.path)
	if err != nil {
		return Project{}, &diag.Error{
			Op: "open the project folder", Err: err, Remedy: "start claudebox in a folder you may enter",
		}
	}
	defer tree.Close()
	g, common, err := g.locate(worktree, bare)
	if err != nil {
		return Project{}, err
	}
	if common != nil {
		defer common.Close()
	}
	v, err := g.look(tree, common)
	if err != nil {
		return Project{}, err
	}
	return v.protect()
}

// GitRoot returns the root of the repository that a folder lies in, or the folder if it lies in none: what [Open] takes
// for the project when asked for the git root.
func GitRoot(dir, home string) (string, error) {
	real, err := canonical(dir)
	if worktree, bare := findRepository(real, canonicalOrClean(home)); err == nil && worktree != "" && !bare {
		real = worktree
	}
	return real, err
}

func canonical(dir string) (string, error) {
	real, err := beneath.Canonical(dir)
	if err != nil {
		err = &diag.Error{Op: "find the project folder", Err: err, Remedy: "change to a folder that exists"}
	}
	return real, err
}

// canonicalOrClean resolves the links in a path, whether something is there or not; none if they lead in a circle.
func canonicalOrClean(path string) string {
	if real, err := beneath.Leads(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// Appeared returns a file that looks secret by its name and was not there when the project was opened, relative to
// Path; it returns "" if there is none.
func (p Project) Appeared() (rel string) {
	tree, err := beneath.Open(p.Path)
	if err != nil {
		return "." // it is not there any more
	}
	defer tree.Close()
	byRel := func(f survey.File, rel string) int { return strings.Compare(f.Rel, rel) }
	for _, f := range p.Scope.walk(tree, &p.Seen, walkLimit, 0).Files {
		at, known := slices.BinarySearchFunc(p.Seen.Files, f.Rel, byRel)
		known = known && p.Seen.Files[at].Stamp.Ino == f.Stamp.Ino
		hidden := slices.ContainsFunc(p.Hidden, func(dir string) bool { return pathname.Below(f.Rel, dir) })
		if !known && !hidden && p.Scope.Hides(f.Rel) && !Shown(p.show, f.Rel) {
			return f.Rel
		}
	}
	return ""
}
