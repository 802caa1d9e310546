package aftermath

import (
	"cmp"
	"os"
	"path"
	"slices"
	"time"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/identity"
)

const (
	// waitLimit is how many records are kept while their projects are away; each
	// costs a launch some fifty microseconds.
	waitLimit = 16
	// waitFor is how long a record is kept. A project that is away for longer
	// counts as deleted: whatever is at its path later is another project.
	waitFor = 30 * 24 * time.Hour
)

// bound drops the records of sessions whose projects are not there that are too
// old, and the oldest of too many.
func bound(waiting []remains, now time.Time) {
	slices.SortFunc(waiting, func(a, b remains) int { return cmp.Compare(b.Began, a.Began) })
	for n, r := range waiting {
		if n >= waitLimit || now.Sub(time.Unix(0, r.Began)) > waitFor {
			os.Remove(r.file.Name())
		}
	}
}

// find opens the folder that the session had, wherever it is now: at its path,
// under another name beside, or where one of the folders near is or lies. Nil:
// it is not there. A folder at its path that is not the same one counts if there
// is something in it, as when all was restored from a backup.
func (was record) find(near []string) *beneath.Folder {
	for _, place := range was.maybe(near) {
		at, err := beneath.Open(place)
		if err != nil {
			continue
		}
		if was.ID != "" && identity.Of(at.FD()) == was.ID {
			at.As(was.Scope.Path)
			return at
		}
		at.Close()
	}
	at, err := beneath.Open(was.Scope.Path)
	if err != nil {
		return nil
	}
	if names, err := at.Names(".", 1); err == nil && len(names) == 0 { // where a disk is mounted at other times
		at.Close()
		return nil
	}
	return at
}

// maybe lists where the folder may be.
func (was record) maybe(near []string) []string {
	places := []string{was.Scope.Path}
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
