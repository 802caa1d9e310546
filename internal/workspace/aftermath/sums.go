package aftermath

import (
	"crypto/sha256"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/hostrun"
	"claudebox/internal/workspace/survey"
)

const (
	// sumLimit is how large a file may be, in bytes, for its content to be
	// compared.
	sumLimit = 256 << 10
	// sumAfter is when the files are read: the start is not to wait for it, and
	// a short session does without.
	sumAfter = 20 * time.Millisecond
)

// sums are what the files held before the session. They are taken while it
// runs already: what a file holds counts only if its time of change is still
// that of before.
type sums struct {
	start *time.Timer
	end   atomic.Bool
	taken chan map[string]content
}

type content [sha256.Size]byte

func sum(dir string, files []survey.File) *sums {
	s := &sums{taken: make(chan map[string]content, 1)}
	s.start = time.AfterFunc(sumAfter, func() { s.taken <- s.take(dir, files) })
	return s
}

func (s *sums) take(dir string, files []survey.File) map[string]content {
	tree, err := beneath.Open(dir)
	if err != nil {
		return nil
	}
	defer tree.Close()
	taken := map[string]content{}
	for _, f := range files {
		if s.end.Load() {
			break
		}
		if hostrun.Means(f.Rel) == "" {
			continue // is never compared
		}
		if of, ok := sumOf(tree, f); ok {
			taken[f.Rel] = of
		}
	}
	return taken
}

// stop gives what was taken till now. It is called once.
func (s *sums) stop() map[string]content {
	if s == nil || s.start.Stop() {
		return nil
	}
	s.end.Store(true)
	return <-s.taken
}

// sumOf reads a file, if it is as it was seen.
func sumOf(tree *beneath.Folder, f survey.File) (of content, ok bool) {
	if f.Kind != beneath.Regular || f.Stamp.Size > sumLimit {
		return of, false
	}
	text, err := tree.Read(f.Rel, sumLimit)
	if err != nil {
		return of, false
	}
	what, err := tree.Look(f.Rel) // after the reading: what changed meanwhile shows
	return sha256.Sum256(text), err == nil && what.Stamp == f.Stamp
}

// equal gives the files that were written to and hold what they held before.
func equal(tree *beneath.Folder, held map[string]content, before, after []survey.File) map[string]bool {
	byRel := func(f survey.File, rel string) int { return strings.Compare(f.Rel, rel) }
	equal := map[string]bool{}
	for _, f := range after {
		at, there := slices.BinarySearchFunc(before, f.Rel, byRel)
		if was, known := held[f.Rel]; known && there && before[at] != f {
			of, ok := sumOf(tree, f)
			equal[f.Rel] = ok && of == was
		}
	}
	return equal
}
