package aftermath

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/identity"
)

// memoryFolder holds what is remembered of all sessions of a user, by the
// identity of what it is about: it is found from any folder, and by whatever
// name a project goes.
const memoryFolder = "memory"

// Memory is what is remembered. It implements [project.Memory].
type Memory struct {
	home  string
	live  func() []record // the sessions that live, or were not looked after yet
	files func() []string // what is there
}

// NewMemory reads what is remembered when it is asked.
func NewMemory(home string) Memory {
	files := func() (names []string) {
		entries, _ := os.ReadDir(path.Join(home, memoryFolder))
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	return Memory{home: home, files: sync.OnceValue(files), live: sync.OnceValue(func() []record {
		live, dead, _ := others(home)
		for _, f := range dead {
			if r, ok := read(f); ok {
				live = append(live, r)
			}
		}
		closeAll(dead)
		return live
	})}
}

func (m Memory) names(file string) []string {
	if !slices.Contains(m.files(), file) {
		return nil
	}
	return rememberedAt(m.home, file)
}

// Pushed are the names that sessions added to the index of a git folder. The
// index is the agent's to write, so that a file is in it does not say that the
// user wants it read or written inside: such a file stays protected, or hidden.
// What is in the index no more is forgotten.
func (m Memory) Pushed(git identity.ID) []string {
	return m.names(pushedFile(git))
}

// Hidden are the names that sessions hid in the working tree of a git folder.
func (m Memory) Hidden(git identity.ID) []string { return m.names(coveredFile(git)) }

// Doubted reports whether a file lies where a session lives that did not find
// it in any index when it began.
func (m Memory) Doubted(file string) bool {
	return slices.ContainsFunc(m.live(), func(r record) bool {
		rel, in := strings.CutPrefix(file, r.Scope.Path+"/")
		return in && !slices.Contains(r.Tracked, rel)
	})
}

// StillHidden are the files below a folder that were hidden for a reason that
// an agent could take away. They stay hidden as long as they exist.
func (m Memory) StillHidden(folder string) (rels []string) {
	ids := map[string]identity.ID{} // of the folder and those above
	for dir := folder; dir != "/" && dir != "."; dir = path.Dir(dir) {
		ids[dir] = identity.At(unix.AT_FDCWD, dir)
	}
	for _, h := range readHidden(m.home) {
		at := h.Path
		for dir, id := range ids {
			if id == h.Root && id != "" {
				at = dir // it was renamed, or is what it was
			}
		}
		for _, name := range h.Names {
			if rel, below := strings.CutPrefix(path.Join(at, name), folder+"/"); below {
				rels = append(rels, rel)
			}
		}
	}
	return rels
}

// hidden are the files of one project that stay hidden.
type hidden struct {
	Root  identity.ID
	Path  string   // of the project when it was last seen
	Names []string // below it
}

const hiddenFile = "hidden"

func pushedFile(git identity.ID) string { return "index-" + short(git) }

func coveredFile(git identity.ID) string { return "covered-" + short(git) }

func short(git identity.ID) string {
	sum := sha256.Sum256([]byte(git))
	return hex.EncodeToString(sum[:8])
}

func rememberedAt(home, name string) (names []string) {
	at, err := beneath.Open(path.Join(home, memoryFolder))
	if err != nil {
		return nil
	}
	defer at.Close()
	readJSON(at, name, &names)
	return names
}

func readHidden(home string) (list []hidden) {
	at, err := beneath.Open(path.Join(home, memoryFolder))
	if err != nil {
		return nil
	}
	defer at.Close()
	readJSON(at, hiddenFile, &list)
	return list
}

func readJSON(at *beneath.Folder, name string, into any) {
	const limit = 16 << 20
	if content, err := at.Read(name, limit); err == nil {
		_ = json.Unmarshal(content, into)
	}
}

// remember changes one file of the memory, while no other session does. change
// gives what is to be there, and whether it is nothing.
func remember(home, name string, change func(at *beneath.Folder) (value any, nothing bool)) error {
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
	value, nothing := change(at)
	if nothing {
		if err := at.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	content, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return at.Replace(name, append(content, '\n'), 0o600)
}

// rememberPushed adds names to what is remembered of an index, and forgets those
// that it does not hold any more.
func rememberPushed(home string, git identity.ID, added []string, holds func(name string) bool) error {
	if before := rememberedAt(home, pushedFile(git)); len(added) == 0 &&
		!slices.ContainsFunc(before, func(n string) bool { return !holds(n) }) {
		return nil
	}
	return remember(home, pushedFile(git), func(at *beneath.Folder) (any, bool) {
		var names []string
		readJSON(at, pushedFile(git), &names)
		names = append(names, added...)
		slices.Sort(names)
		names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return !holds(name) })
		return names, len(names) == 0
	})
}

// rememberNames adds names to a list.
func rememberNames(home, file string, added []string) error {
	old := rememberedAt(home, file)
	if !slices.ContainsFunc(added, func(name string) bool { return !slices.Contains(old, name) }) {
		return nil
	}
	return remember(home, file, func(at *beneath.Folder) (any, bool) {
		var names []string
		readJSON(at, file, &names)
		names = append(names, added...)
		slices.Sort(names)
		return slices.Compact(names), false
	})
}

// rememberHidden takes down what stays hidden in a project, and forgets what is
// not there any more.
func rememberHidden(home string, root identity.ID, tree *beneath.Folder, added []string) error {
	gone := func(rel string) bool { what, err := tree.Look(rel); return err == nil && what.Kind == beneath.Absent }
	is := func(h hidden) bool { return h.Root == root }
	list := readHidden(home)
	at := slices.IndexFunc(list, is)
	if at < 0 && len(added) == 0 {
		return nil
	}
	return remember(home, hiddenFile, func(folder *beneath.Folder) (any, bool) {
		var list []hidden
		readJSON(folder, hiddenFile, &list)
		names := slices.Clone(added)
		for _, h := range list {
			if is(h) {
				names = append(names, h.Names...)
			}
		}
		slices.Sort(names)
		names = slices.DeleteFunc(slices.Compact(names), gone)
		list = slices.DeleteFunc(list, is)
		if len(names) > 0 {
			list = append(list, hidden{root, tree.Path(), names})
		}
		return list, len(list) == 0
	})
}
