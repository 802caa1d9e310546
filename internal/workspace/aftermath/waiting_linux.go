package aftermath

import (
	"cmp"
	"os"
	"path"
	"slices"
	"time"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/identity"
	"claudebox/internal/workspace/project"
)

const (
	// waitLimit is how many records are kept while their projects are away; each
	// costs a launch some fifty microseconds.
	waitLimit = 16
	// waitFor is how long a record is kept. A project that is away for longer
	// counts as deleted: whatever is at its path later is another project.
	waitFor = 30 * 24 * time.Hour
)

// waiting are the records of sessions whose projects are not there.
type waiting []waiter

type waiter struct {
	file  string
	began int64 // nanoseconds since 1970
}

// bound drops the records that are too old, and the oldest of too many.
func (w waiting) bound(now time.Time) {
	slices.SortFunc(w, func(a, b waiter) int { return cmp.Compare(b.began, a.began) })
	for n, a := range w {
		if n >= waitLimit || now.Sub(time.Unix(0, a.began)) > waitFor {
			os.Remove(a.file)
		}
	}
}

// find opens the folder that the session had, wherever it is now: at its path,
// under another name beside, or where one of the folders near is or lies. Nil:
// it is not there. A folder at its path that is not the same one counts if there
// is something in it, as when all was restored from a backup.
func (was record) find(near []string) *beneath.Folder {
	at, err := beneath.Open(was.Scope.Path)
	if err == nil && was.isIt(at) {
		return at
	}
	for _, place := range was.maybe(near) {
		moved, err := beneath.Open(place)
		if err != nil {
			continue
		}
		if was.isIt(moved) {
			if at != nil {
				at.Close()
			}
			moved.As(was.Scope.Path)
			return moved
		}
		moved.Close()
	}
	if at != nil {
		if names, err := at.Names(".", 1); err == nil && len(names) == 0 { // where a disk is mounted at other times
			at.Close()
			return nil
		}
	}
	return at
}

func (was record) isIt(at *beneath.Folder) bool {
	return was.ID != "" && identity.Of(at.FD()) == was.ID
}

// maybe lists where a folder may be that was moved.
func (was record) maybe(near []string) (places []string) {
	for _, dir := range near {
		for ; dir != "/" && dir != "."; dir = path.Dir(dir) {
			places = append(places, dir)
		}
	}
	const most = 2000
	entries, _ := os.ReadDir(path.Dir(was.Scope.Path))
	for _, e := range entries[:min(len(entries), most)] {
		if e.IsDir() {
			places = append(places, path.Join(path.Dir(was.Scope.Path), e.Name()))
		}
	}
	return places
}

// waitsBelow finds, in what was seen of a project, the folder of a session that
// was killed and not looked after yet; empty: there is none.
func (was record) waitsBelow(tree *beneath.Folder, seen project.Seen) (rel string) {
	if rel, found := seen.Where(was.Inode); found && rel != "." && was.ID == identity.At(tree.FD(), rel) {
		return rel
	}
	return ""
}

// inodeOf is the number of a folder itself; 0: it could not be had.
func inodeOf(tree *beneath.Folder) uint64 {
	what, err := tree.Look(".")
	if err != nil {
		return 0
	}
	return what.Stamp.Ino
}
