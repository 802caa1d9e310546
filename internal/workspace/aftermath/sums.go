package aftermath

import (
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
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
	mu    sync.Mutex
	end   bool
	of    map[string][sha256.Size]byte
}

func sum(dir string, files []survey.File) *sums {
	s := &sums{of: map[string][sha256.Size]byte{}}
	s.start = time.AfterFunc(sumAfter, func() { s.take(dir, files) })
	return s
}

func (s *sums) take(dir string, files []survey.File) {
	tree, err := beneath.Open(dir)
	if err != nil {
		return
	}
	defer tree.Close()
	for _, f := range files {
		if hostrun.Means(f.Rel) == "" {
			continue // is never compared
		}
		of, ok := sumOf(tree, f)
		s.mu.Lock()
		end := s.end
		if ok {
			s.of[f.Rel] = of
		}
		s.mu.Unlock()
		if end {
			return
		}
	}
}

// sumOf reads a file, if it is as it was seen.
func sumOf(tree *beneath.Folder, f survey.File) (of [sha256.Size]byte, ok bool) {
	if f.Kind != beneath.Regular || f.Stamp.Size > sumLimit {
		return of, false
	}
	content, err := tree.Read(f.Rel, sumLimit)
	if err != nil {
		return of, false
	}
	what, err := tree.Look(f.Rel) // after the reading: what changed meanwhile shows
	return sha256.Sum256(content), err == nil && what.Stamp == f.Stamp
}

func (s *sums) stop() {
	if s == nil {
		return
	}
	s.start.Stop()
	s.mu.Lock()
	s.end = true
	s.mu.Unlock()
}

// equal gives the files that were written to and hold what they held before.
func (s *sums) equal(tree *beneath.Folder, before, after []survey.File) map[string]bool {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	byRel := func(f survey.File, rel string) int { return strings.Compare(f.Rel, rel) }
	equal := map[string]bool{}
	for _, f := range after {
		at, there := slices.BinarySearchFunc(before, f.Rel, byRel)
		if was, known := s.of[f.Rel]; known && there && before[at] != f {
			of, ok := sumOf(tree, f)
			equal[f.Rel] = ok && of == was
		}
	}
	return equal
}
