package aftermath

import (
	"cmp"
	"os"
	"slices"
	"time"

	"claudebox/internal/linux/beneath"
)

const (
	// waitLimit is how many records wait for their projects; each costs a
	// launch some fifty microseconds.
	waitLimit = 16
	// waitFor is how long one waits. A project that does not come back in it
	// was deleted: what lies there later is another one.
	waitFor = 30 * 24 * time.Hour
)

// absent is the record of a session whose project is not there.
type absent struct {
	file  *os.File
	began int64 // nanoseconds since 1970
}

type waiting []absent

// bound drops the records that are too old, and the oldest of too many.
func (w waiting) bound(now time.Time) {
	slices.SortFunc(w, func(a, b absent) int { return cmp.Compare(b.began, a.began) })
	for n, a := range w {
		if n >= waitLimit || now.Sub(time.Unix(0, a.began)) > waitFor {
			release(a.file)
		}
	}
}

// isAnother tells whether a folder is not the one that the session had, but an
// empty one, as there is where a disk is mounted at other times.
func (was record) isAnother(tree *beneath.Folder) bool {
	names, err := tree.Names(".", 1)
	return err == nil && len(names) == 0 && inodeOf(tree) != was.Inode
}

// inodeOf is the number of a folder itself; 0: it could not be had.
func inodeOf(tree *beneath.Folder) uint64 {
	what, err := tree.Look(".")
	if err != nil {
		return 0
	}
	return what.Stamp.Ino
}
