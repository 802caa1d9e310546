package aftermath

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/linux/identity"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/project"
)

// What is remembered of all sessions of a user, by the identity of the files: it is found from any folder, and whatever
// the path of a project is now. Each file is a list, in a form that keeps names of any bytes.
const (
	memoryFolder = "memory"
	hadFile      = "had"     // hashes of tracked files that may be secrets, as sessions left them
	stayFile     = "hidden"  // what stays hidden, a [hidden] for each project
	hiddenFile   = "covered" // all that was hidden, in the same way
	enteredFile  = "entered" // folders that tools fill and in which git had files, in the same way
)

// Memory is what is remembered of earlier sessions. It implements [project.Memory].
type Memory struct {
	home  string
	live  []record // the sessions that lived when it was made, or were not looked after yet
	fault *error   // why something could not be recalled; see [Memory.Err]
}

// NewMemory is to be called before a project is looked at, so that no session is missed that ends meanwhile.
func NewMemory(home string) Memory {
	live, dead, _ := others(home) // what cannot be read refuses [Begin]
	for _, r := range dead {
		live = append(live, r.record)
	}
	closeAll(dead)
	return Memory{home, live, new(error)}
}

// Err returns why something could not be recalled: then what was hidden once may be shown, and nothing may start.
func (m Memory) Err() error { return *m.fault }

// Inherited replaces, in a snapshot, what lies where a session lives or was not reviewed by what that one saw before.
func (m Memory) Inherited(seen git.Snapshot) git.Snapshot { return inherited(seen, m.live) }

// Had reports whether a session could read a tracked file with a content of this hash when it ended.
func (m Memory) Had(sum string) bool {
	list, err := recall[string](m.home, hadFile)
	*m.fault = cmp.Or(*m.fault, err)
	return slices.Contains(list, sum)
}

// StillHidden returns the files below a folder that stay hidden as long as they exist, because an agent could take the
// reason away, and all that were hidden.
func (m Memory) StillHidden(folder string) (stay, all []string) {
	return m.below(folder, stayFile), m.below(folder, hiddenFile)
}

// Entered returns the folders below a folder that tools fill, by their names, and in which git had files once.
func (m Memory) Entered(folder string) []string { return m.below(folder, enteredFile) }

// below returns what a file of the memory has below a folder.
func (m Memory) below(folder, file string) (rels []string) {
	ids := map[string]identity.ID{} // of the folder and those above
	for dir := folder; dir != "/" && dir != "."; dir = path.Dir(dir) {
		ids[dir] = identity.At(unix.AT_FDCWD, dir)
	}
	list, err := recall[hidden](m.home, file)
	*m.fault = cmp.Or(*m.fault, err)
	for _, h := range list {
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

// hidden are the files of one project that were hidden.
type hidden struct {
	Root  identity.ID
	Path  string   // of the project when it was last seen
	Names []string // below it
}

// recall reads a file of the memory; it returns nil if there is none. One that cannot be read stays as it is.
func recall[T any](home, name string) (list []T, err error) {
	const limit = 256 << 20
	file := path.Join(home, memoryFolder, name)
	content, err := smallfile.Read(file, limit)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR): // there is no such folder
		return nil, nil
	case err == nil && !cachefile.Decode(content, &list):
		err = errors.New("it is damaged, or another claudebox wrote it")
	}
	if err != nil {
		err = &diag.Error{
			Op: "recall what was hidden from earlier sessions, from " + file, Err: err,
			Remedy: "make it readable for you; or look through your projects for secrets that a session may see, " +
				"and remove it",
		}
	}
	return list, err
}

// How long to wait for the lock of the memory, which is held for milliseconds: its holder may be stopped.
const lockPatience, lockPause = 4 * time.Second, 5 * time.Millisecond

// remember changes a file of the memory, while no other session does. change returns the new list for the old one.
func remember[T any](home, name string, change func([]T) []T) error {
	old, err := recall[T](home, name)
	if err != nil || len(old)+len(change(old)) == 0 || reflect.DeepEqual(old, change(old)) {
		return err
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
	for begun := time.Now(); ; time.Sleep(lockPause) {
		err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Since(begun) > lockPatience {
			err = fmt.Errorf("another claudebox has held the lock for %s: %w", lockPatience, err)
			return &diag.Error{
				Op: "lock " + folder, Err: err,
				Remedy: "end that one if it is stopped (`pkill -CONT claudebox` lets it go on), and try again",
			}
		}
	}
	if old, err = recall[T](home, name); err != nil {
		return err
	}
	list := change(old)
	if len(list) == 0 {
		if err := at.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return at.Replace(name, cachefile.Encode(list), 0o600)
}

// isAbsent reports whether nothing lies at a path. What cannot be looked at counts as there.
func isAbsent(tree *beneath.Folder, rel string) bool {
	what, err := tree.Look(rel)
	return err == nil && what.Kind == beneath.Absent
}

// mostHidden bounds what is remembered of files that are not there any more, in each project.
const mostHidden = 10_000

// rememberHidden writes into a file of the memory what is hidden in a project. What stays hidden whatever it holds is
// forgotten when it is not there any more. All else is not: the user may have put it away while a session commits its
// name, and bring it back; and tools make their folders again.
func rememberHidden(home, file string, root identity.ID, tree *beneath.Folder, added []string) error {
	return remember(home, file, func(list []hidden) []hidden {
		names := slices.Clone(added)
		for _, h := range list {
			if h.Root == root {
				names = append(names, h.Names...)
			}
		}
		list = slices.DeleteFunc(slices.Clone(list), func(h hidden) bool { return h.Root == root })
		slices.Sort(names)
		names = slices.Compact(names)
		if file == stayFile || file == hiddenFile && len(names) > mostHidden {
			names = slices.DeleteFunc(names, func(rel string) bool { return isAbsent(tree, rel) })
		}
		if len(names) > 0 {
			list = append(list, hidden{root, tree.Path(), names})
		}
		return list
	})
}

// mostHad bounds what [Memory.Had] knows; the latest counts.
const mostHad = 10_000

// rememberHad remembers what the session could read in tracked files that may be secrets, and git does not have. It is
// to be called when the session ends: what is in them later, the user may have written.
func (was record) rememberHad(home string, tree *beneath.Folder, after project.Seen) error {
	sums := []string{}
	for name, sum := range after.Edited(tree) {
		if !was.covers(tree, name) {
			sums = append(sums, sum)
		}
	}
	slices.Sort(sums)
	return remember(home, hadFile, func(old []string) []string {
		older := slices.DeleteFunc(slices.Clone(old), func(sum string) bool {
			_, again := slices.BinarySearch(sums, sum)
			return again
		})
		list := slices.Concat(older, sums)
		return list[max(0, len(list)-mostHad):]
	})
}

// covers reports whether a name is, or lies below, what was read-only or hidden. The agent can rename a folder with
// something hidden in it: then the file is known by its inode.
func (was record) covers(tree *beneath.Folder, name string) bool {
	for ; name != "." && name != "/"; name = path.Dir(name) {
		if slices.Contains(was.Covered, name) {
			return true
		}
		if what, err := tree.Look(name); err == nil && slices.Contains(was.Inodes, what.Stamp.Ino) {
			return true
		}
	}
	return false
}

// walksFolder holds what was seen of large projects, so that the next launch looks only at what has changed since.
const walksFolder = "walks"

// Known returns what was seen of a project when its last session ended; nil when nothing is known.
func (m Memory) Known(s project.Scope) *project.Seen {
	content := cachefile.Read(walkFile(m.home, s))
	if len(content) < sha256.Size || sha256.Sum256(content[sha256.Size:]) != [sha256.Size]byte(content) {
		return nil
	}
	return project.Unpack(content[sha256.Size:])
}

// keep keeps what was seen after a session, for [Memory.Known]. What the session changed is in its report: the next
// session begins with what is there now.
func keep(home string, s project.Scope, seen project.Seen) {
	if !seen.Large() || seen.Cut {
		return
	}
	content := seen.Pack()
	sum := sha256.Sum256(content)
	cachefile.Write(walkFile(home, s), append(sum[:], content...))
}

// walkFile returns the file for a scope. Its name depends on everything that decides what is looked for.
func walkFile(home string, s project.Scope) string {
	return path.Join(home, walksFolder, state.ID(s.Walked()))
}

// Filled returns what earlier launches found in the folders of a project that tools fill; nothing if that is not known.
func (m Memory) Filled(dir string) (f project.Filled) {
	cachefile.Decode(cachefile.Read(filledFile(m.home, dir)), &f)
	return f
}

// keepFilled keeps for [Memory.Filled] what this launch found, unless that was known.
func keepFilled(home string, p project.Project) {
	if p.Filled.State != "" && p.Filled.State != (Memory{home: home}).Filled(p.Path).State {
		cachefile.Write(filledFile(home, p.Path), cachefile.Encode(p.Filled))
	}
}

func filledFile(home, dir string) string {
	return path.Join(home, walksFolder, "filled-"+state.ID(dir))
}
