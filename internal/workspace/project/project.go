// Package project says what the sandbox sees of the caller's folder: its canonical place, the git folders that belong
// to it, which of its files the host executes and must therefore be read-only inside, which look secret and are hidden.
//
// It reads the project and the git folder that its .git points at, and trusts neither: an agent may have written there
// in earlier sessions. It runs no program (git in a project obeys core.fsmonitor). It reads no file of the project
// through a symbolic link, but looks up where a link leads, to cover that.
//
// [Open] reads what is around the folder (lookAround) and judges it (locate), then looks at all that is in the project
// (look) and says what is to be laid over it (protect). It changes nothing; it connects to sockets in the project, to
// see whether somebody listens. [Project.Hold] makes the few stand-ins without which an absent file would be a way to
// the host, and takes them away again.
package project

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/handover"
	"claudebox/internal/workspace/homelink"
	"claudebox/internal/workspace/survey"
)

// Request is what [Open] is asked for. All paths are absolute.
type Request struct {
	Dir string // the caller's current folder, or the folder beside the project; Open resolves links
	// Beside says that Dir is not the project but a further folder that the user mounts read-write: the host's git
	// obeys what is in it, too. A git folder outside of it is not mounted, and sockets in it stay visible.
	Beside bool

	// Lent says that the folder is mounted read-only: only what is secret in it is covered.
	Lent bool

	Home  string   // the user's home
	UID   int      // of the user
	Own   []string // claudebox's own folders: ~/.claudebox and its XDG ones
	Never []string // paths that no sandbox may see

	Build          string   // identifies the running claudebox: what another build has seen is not used
	GitRoot        bool     // take the root of the repository for the project
	WritableConfig bool     // git: {config: writable}: a .git that cannot be protected is no reason to refuse
	Strict         bool     // protect_mode: strict: tracked files are read-only too
	Worktrees      []string // globs of folders beside the project that the agent gets, too, relative to the project
	Protect        []string // patterns of files to be made read-only, see [Matches]
	Hide, Show     []string // those of files to hide, or not to
	OwnFiles       []string // profiles and plans that claudebox itself obeys

	HomeLinks []homelink.Link           // of the user's home and PATH
	HomeFiles map[homelink.Inode]string // files there that have further names elsewhere
	// IsSecret reports whether one of HomeFiles is secret: by another name it is hidden here. Nil: none is.
	IsSecret func(name string) bool
	LedTo    []string // where links with the name of a secret lead from other folders: hidden if here

	UserGit []UserGit // the user's own git configuration, which git obeys in the project

	Memory Memory // of earlier and running sessions; never nil
}

// Memory is what earlier sessions left, and what running ones hold. It is looked up by the identity of files, so it is
// found when a project was moved. Names are relative to a git folder's working tree.
type Memory interface {
	// Known returns what the last look at the same scope saw; nil if that is not known.
	Known(s Scope) *Seen
	// Filled returns what was found in the folders of a project that tools fill.
	Filled(project string) Filled
	// Had reports whether a session could read a tracked file with a content of this hash, see [Tracked.Edited].
	Had(sum string) bool
	// StillHidden returns the files below a folder that were hidden from earlier sessions: those that stay hidden
	// whatever becomes of the reason ([Project.Stay]), and all.
	StillHidden(folder string) (stay, all []string)
	// Entered returns the folders below a folder, called as those that tools fill, in which git had files before any
	// session.
	Entered(folder string) []string
	// Inherited returns the snapshot with the parts that other sessions work on, or were not reviewed for, as those
	// sessions found them.
	Inherited(seen git.Snapshot) git.Snapshot
}

// Project is a folder that may be given to a sandbox, and what goes with it. Places in it are relative to Path.
type Project struct {
	Path         string           // canonical; mounted read-write at its own path
	Dir          string           // canonical folder where the agent starts, at or below Path
	InstanceRoot string           // the folder that the instance is named after: the main worktree, or the project
	Repo         Repo             // zero when the project is in no repository
	Mounts       []Mount          // beyond the project itself, a shorter path before a longer one
	Places       []handover.Place // git folders of the user's; the agent gets one of its own for each. Without folders
	Notes        []Note

	Hidden   []string // files and folders that are covered
	Stay     []string // the hidden ones that stay so later, even if the agent removes the link that made them known
	ReadOnly []string // what the host executes and cannot be changed inside, and files of git that a copy covers
	Reported []string // executed by the host, and changeable (tracked files, links): a change is reported
	Tracked  []string // names in git's indexes, as far as they matter here and no session may have added them
	Cut      bool     // not all was looked at: the rest is neither hidden nor protected

	Scope  Scope        // what is looked at again when a session has ended
	Seen   Seen         // what a look by Scope saw, before the session
	Filled Filled       // repositories in folders that tools fill (node_modules and the like)
	Before git.Snapshot // the git folders before the session, the common folder included

	// Replaced is what is secret in the git folders of Places, with what is to be seen instead of it: nothing of it is
	// mounted, as these folders do not enter.
	Replaced []Mount
	Away     []string // where links with the name of a secret lead, if not into the project

	StandIns []StandIn // what [Project.Hold] makes
	show     []string
}

// Mode says what is mounted over a path: the path itself, or something else.
type Mode string

const (
	// Inner is a git folder of the user's that does not enter: one of the agent's own lies in its place.
	Inner Mode = "inner"
	// Own is the folder of a submodule that is not checked out: one of the agent's own lies in its place. The host's
	// git would obey a repository that the agent makes there.
	Own Mode = "own"
	// Pin is a folder bound read-write over itself, so that it cannot be renamed away with the mounts that lie in it.
	Pin Mode = "pin"
	// ReadOnly is a file or folder bound read-only over itself.
	ReadOnly Mode = "ro"
	// Made is a file covered by made content, read-only.
	Made Mode = "made"
	// Hidden is a file or folder covered by an empty one, read-only.
	Hidden Mode = "hidden"
)

// Mount covers one path. Root is the path or a folder above it, canonical; no link is followed between Root and Path.
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

// Open finds the project of the caller's current folder, looks at all of it, and says what is to be laid over it.
// It refuses folders that the agent must not get, and a repository whose protection cannot be set up; each
// refusal is a [*diag.Error] with a remedy.
func Open(req Request) (Project, error) {
	around, err := lookAround(req)
	if err != nil {
		return Project{}, err
	}
	loc, err := around.locate()
	if err != nil {
		return Project{}, err
	}
	tree, err := beneath.Open(loc.path)
	if err != nil {
		return Project{}, &diag.Error{
			Op: "open the project folder", Err: err, Remedy: openTheWay,
		}
	}
	defer tree.Close()
	var common *beneath.Folder
	if loc.outside() {
		if common, err = beneath.Open(loc.repo.Common); err != nil {
			return Project{}, unprotectable(loc.repo.Common, err, usualMend)
		}
		defer common.Close()
	}
	v, err := loc.look(tree, common)
	if err != nil {
		return Project{}, err
	}
	return v.protect()
}

// GitRoot returns the root of the repository that a folder lies in, also of one of jj or Mercurial, or the folder if it
// lies in none: what [Open] takes for the project when asked for the git root.
func GitRoot(dir, home string) (string, error) {
	dir, home, err := canonical(dir, home)
	if err != nil {
		return "", err
	}
	if worktree, bare := git.Discover(dir, home); worktree != "" && !bare {
		return worktree, nil
	}
	return otherRoot(dir, home), nil
}

const openTheWay = "open the folders on the way to it for you (chmod u+rx), or change to another"

// canonical resolves the links in the paths of a folder and of the home. It fails if the folder is not there.
func canonical(dir, home string) (realDir, realHome string, err error) {
	realDir, err = beneath.Canonical(dir)
	if err != nil {
		remedy := "change to a folder that exists"
		if errors.Is(err, fs.ErrPermission) {
			remedy = openTheWay
		}
		return "", "", &diag.Error{Op: "find the project folder", Err: err, Remedy: remedy}
	}
	return realDir, beneath.LeadsOrClean(home), nil
}

// Appeared returns a file that looks secret by its name and was made or replaced since the project was opened, relative
// to Path; "" if there is none, and "." if the project cannot be opened any more.
func (p Project) Appeared() (rel string) {
	tree, err := beneath.Open(p.Path)
	if err != nil {
		return "."
	}
	defer tree.Close()
	byRel := func(f survey.File, rel string) int { return strings.Compare(f.Rel, rel) }
	for _, f := range p.Scope.walk(tree, &p.Seen, walkLimit, 0).Files {
		at, known := slices.BinarySearchFunc(p.Seen.Files, f.Rel, byRel)
		known = known && p.Seen.Files[at].Stamp.Ino == f.Stamp.Ino
		if !known && !pathname.BelowAny(f.Rel, p.Hidden) && p.Scope.Hides(f.Rel) && !Matches(p.show, f.Rel, true) {
			return f.Rel
		}
	}
	return ""
}
