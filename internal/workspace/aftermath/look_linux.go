package aftermath

import (
	"fmt"
	"os"
	"slices"
	"time"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/project"
)

// openRounds is how often folders that the agent closed are opened, and what
// is closed in them found.
const openRounds = 20

// look walks the project afterwards. A folder that the agent closed is opened:
// who opens it later would find in it what nobody judged.
func (was record) look(tree *beneath.Folder, before *project.Seen) project.Seen {
	openRoot(tree)
	after := was.Scope.Again(tree, before, was.since())
	for range openRounds {
		if !openAll(tree, was.closedInside(after)) {
			break
		}
		after = was.Scope.Again(tree, before, was.since())
	}
	return after
}

// openRoot lets the user into their project again.
func openRoot(tree *beneath.Folder) {
	at := fmt.Sprintf("/proc/self/fd/%d", tree.FD())
	if info, err := os.Stat(at); err == nil && info.Mode().Perm()&0o500 != 0o500 {
		_ = os.Chmod(at, info.Mode().Perm()|privateDir) // else the look fails, and says so
	}
}

func (was record) closedInside(after project.Seen) []string {
	return slices.DeleteFunc(slices.Clone(after.Closed),
		func(dir string) bool { return slices.Contains(was.Closed, dir) })
}

func openAll(tree *beneath.Folder, closed []string) (opened bool) {
	for _, dir := range closed {
		opened = tree.Chmod(dir, privateDir) == nil || opened
	}
	return opened
}

// unseen is what keeps a look from being a whole one, where that was not so
// before: the next launch looks again.
func (was record) unseen(after project.Seen) (faults []string) {
	for _, dir := range was.closedInside(after) {
		faults = append(faults, "look into "+dir+": it was closed inside")
	}
	if after.Cut && !was.Cut {
		faults = append(faults, "look at all of the project: it has more entries than can be, since this session")
	}
	return faults
}

// since is when the session began, in nanoseconds since 1970. The clock of a
// file system may be behind.
func (was record) since() int64 { return was.Began - time.Second.Nanoseconds() }
