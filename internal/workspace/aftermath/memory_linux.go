package aftermath

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/agent/state"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/linux/identity"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/project"
)

// What is remembered of all sessions of a user, by the identity of what it is about: it is found from any folder, and
// by whatever name a project goes. Each file is a list, in a form that keeps names of any bytes.
const (
	memoryFolder = "memory"
	pushedNames  = "index-"   // and the git folder: what sessions added to its index
	coveredNames = "covered-" // and the repository: what sessions hid in its working trees
	stayFile     = "hidden"   // what stays hidden, a [hidden] for each project
	hiddenFile   = "covered"  // all that was hidden, in the same way
)

// Memory is what is remembered. It implements [project.Memory].
type Memory struct {
	home string
	live []record // the sessions that lived when it was made, or were not looked after yet
}

// NewMemory is made before a project is looked at: a session that ends while it is must not be missed.
func NewMemory(home string) Memory {
	live, dead := others(home)
	for _, r := range dead {
		live = append(live, r.record)
	}
	closeAll(dead)
	return Memory{home, live}
}

// Inherited takes, of what was seen where such a session lives, what that one saw.
func (m Memory) Inherited(seen git.Snapshot) git.Snapshot { return inherited(seen, m.live) }

// Pushed are the names that sessions added to the index of a git folder. The index is the agent's to write, so that a
// file is in it does not say that the user wants it read or written inside: such a file stays protected, or hidden.
// What is in the index no more is forgotten.
func (m Memory) Pushed(git identity.ID) []string { return recall[string](m.home, of(pushedNames, git)) }

// Hidden are the names that sessions hid in the working trees of a repository.
func (m Memory) Hidden(common identity.ID) []string {
	return recall[string](m.home, of(coveredNames, common))
}

// Doubted reports whether a file lies where a session lives that did not find it in any index when it began.
func (m Memory) Doubted(file string) bool {
	return slices.ContainsFunc(m.live, func(r record) bool {
		rel, in := strings.CutPrefix(file, r.Scope.Path+"/")
		return in && !slices.Contains(r.Tracked, rel)
	})
}

// StillHidden are the files below a folder that stay hidden as long as they exist, for an agent could take the reason
// away, and all that were hidden.
func (m Memory) StillHidden(folder string) (stay, all []string) {
	ids := map[string]identity.ID{} // of the folder and those above
	for dir := folder; dir != "/" && dir != "."; dir = path.Dir(dir) {
		ids[dir] = identity.At(unix.AT_FDCWD, dir)
	}
	below := func(file string) (rels []string) {
		for _, h := range recall[hidden](m.home, file) {
			at := h.Path
			for dir, id := range ids {
				if id == h.Root && id != "" {
					at = dir // it was renamed, or is what it was
				}
			}
			for _, name := range h.Names {
				if rel, in := strings.CutPrefix(path.Join(at, name), folder+"/"); in {
					rels = append(rels, rel)
				}
			}
		}
		return rels
	}
	return below(stayFile), below(hiddenFile)
}

// hidden are the files of one project that were hidden.
type hidden struct {
	Root  identity.ID
	Path  string   // of the project when it was last seen
	Names []string // below it
}

// of names the file with such names of a git folder.
func of(names string, git identity.ID) string {
	sum := sha256.Sum256([]byte(git))
	return names + hex.EncodeToString(sum[:8])
}

// recall reads a file of the memory; nil: there is none.
func recall[T any](home, name string) (list []T) {
	cachefile.Decode(cachefile.Read(path.Join(home, memoryFolder, name)), &list)
	return list
}

// remember changes a file of the memory, while no other session does. change gives what is to be there from what is.
func remember[T any](home, name string, change func([]T) []T) error {
	if old := recall[T](home, name); len(old)+len(change(old)) == 0 || reflect.DeepEqual(old, change(old)) {
		return nil
	}
	folder := path.Join(home, memoryFolder)
	if err := os.Mkdir(folder, privateDir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	at, err := beneath.Open(folder)
	if err != nil {
		return err
	}
	defer at.Close()
	lock, err := at.OpenDir(".")
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	list := change(recall[T](home, name))
	if len(list) == 0 {
		if err := at.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return at.Replace(name, cachefile.Encode(list), 0o600)
}

// with adds names to a list, and leaves out those that gone reports.
func with(old, added []string, gone func(string) bool) []string {
	list := slices.Concat(old, added)
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), gone)
}

// rememberHidden takes down in a file what is hidden in a project, and forgets what is not there any more.
func rememberHidden(home, file string, root identity.ID, tree *beneath.Folder, added []string) error {
	gone := func(rel string) bool { what, err := tree.Look(rel); return err == nil && what.Kind == beneath.Absent }
	return remember(home, file, func(list []hidden) []hidden {
		var names []string
		for _, h := range list {
			if h.Root == root {
				names = append(names, h.Names...)
			}
		}
		list = slices.DeleteFunc(slices.Clone(list), func(h hidden) bool { return h.Root == root })
		if names = with(names, added, gone); len(names) > 0 {
			list = append(list, hidden{root, tree.Path(), names})
		}
		return list
	})
}

// takeDown remembers the names that a session added to git's indexes for another reason than that it made the files:
// what was read-only or hidden would be so no more next time, and what is not there would not be hidden when the user
// makes it. And it remembers what was hidden, for each repository of which an index may come to hold it: git takes
// names out of commits, which are the agent's to make.
func (was record) takeDown(home string, tree *beneath.Folder, after project.Seen) error {
	absent := func(name string) bool { what, err := tree.Look(name); return err == nil && what.Kind == beneath.Absent }
	// Any of the indexes may be the last to hold a name.
	by := func(names []string, which func(project.Indexed) identity.ID) map[identity.ID][]string {
		list := map[identity.ID][]string{}
		for _, name := range names {
			for _, at := range after.Indexed(name) {
				list[which(at)] = append(list[which(at)], at.Name)
			}
		}
		return list
	}
	index := func(at project.Indexed) identity.ID { return at.Git }
	repository := func(at project.Indexed) identity.ID { return at.Common }
	pushed := by(slices.DeleteFunc(after.All(), func(name string) bool {
		return slices.Contains(was.Tracked, name) ||
			!(absent(name) && was.Scope.MayHide(name)) && !was.covers(tree, name)
	}), index)
	var faults []error
	for git, names := range by(slices.DeleteFunc(slices.Clone(was.Hidden), absent), repository) {
		faults = append(faults, remember(home, of(coveredNames, git), func(old []string) []string {
			return with(old, names, func(string) bool { return false })
		}))
	}
	for git, names := range by(after.All(), index) {
		gone := func(name string) bool {
			return !slices.Contains(names, name) && (was.Scope.Strip == "" || strings.HasPrefix(name, was.Scope.Strip))
		}
		faults = append(faults, remember(home, of(pushedNames, git), func(old []string) []string {
			return with(old, pushed[git], gone)
		}))
	}
	return errors.Join(faults...)
}

// covers reports whether a name is, or lies below, what was read-only or hidden. A folder with something hidden in it
// can be renamed: the file is known by its inode then.
func (was record) covers(tree *beneath.Folder, name string) bool {
	for ; name != "."; name = path.Dir(name) {
		if slices.Contains(was.Covered, name) {
			return true
		}
		if what, err := tree.Look(name); err == nil && slices.Contains(was.Inodes, what.Stamp.Ino) {
			return true
		}
	}
	return false
}

// walksFolder is where it is kept what was seen of large projects, so that the next launch looks only at what was
// changed since.
const walksFolder = "walks"

// Known is what was seen of a project when its last session ended; nil when nothing is known.
func Known(home string, s project.Scope) *project.Seen {
	content := cachefile.Read(walkFile(home, s))
	if len(content) < sha256.Size || sha256.Sum256(content[sha256.Size:]) != [sha256.Size]byte(content) {
		return nil
	}
	return project.Unpack(content[sha256.Size:])
}

// keep writes down what was seen. What the session changed is told by its report: the next session begins with what is
// there now.
func keep(home string, s project.Scope, seen project.Seen) {
	if !seen.Large() || seen.Cut {
		return
	}
	content := seen.Pack()
	sum := sha256.Sum256(content)
	cachefile.Write(walkFile(home, s), append(sum[:], content...))
}

// walkFile is named after all that decides what is looked for.
func walkFile(home string, s project.Scope) string {
	sum := sha256.Sum256([]byte(s.Walked()))
	return filepath.Join(home, walksFolder, hex.EncodeToString(sum[:8]))
}

// Filled is what earlier launches found in the folders of a project that tools fill; nothing, when that is not known.
func Filled(home, dir string) (f project.Filled) {
	cachefile.Decode(cachefile.Read(filledFile(home, dir)), &f)
	return f
}

// keepFilled writes it down, unless it stands there.
func keepFilled(home string, p project.Project) {
	if p.Filled.State == "" || p.Filled.State == Filled(home, p.Path).State {
		return
	}
	cachefile.Write(filledFile(home, p.Path), cachefile.Encode(p.Filled))
}

func filledFile(home, dir string) string {
	return filepath.Join(home, walksFolder, "filled-"+state.ID(dir))
}
