package branch

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/workspace/survey"
)

// What git says of a repository and a working tree it says again as long as nothing in them has changed. A start and an
// end at which that is so ask nobody: a box with git takes half as long as all the rest of a start.

// mostStill is how many files and folders are looked at. Of more, git is asked.
const mostStill = 200_000

// still is the state of folders, as it is collected.
type still struct {
	left atomic.Int64 // how many entries are looked at yet; below 0: there are more, or something cannot be known

	mu      sync.Mutex
	folders []string // the path of each folder, with a hash of what is in it
	newest  int64    // of the changes, in nanoseconds since 1970
}

func newStill() *still {
	s := &still{}
	s.left.Store(mostStill)
	return s
}

// fail says that something cannot be known.
func (s *still) fail() { s.left.Store(math.MinInt32) }

// open notes a folder at a path.
func (s *still) open(at string, take func(*beneath.Folder)) {
	f, err := beneath.Open(at)
	if err != nil {
		s.fail()
		return
	}
	defer f.Close()
	take(f)
}

// seen is what becomes of a name.
type seen int

const (
	unseen   seen = iota // it is not looked at
	noted                // it is, and what is in it is not
	nonempty             // likewise; of a folder it is noted whether anything is in it
	entered              // what is in it is noted, too
)

// take notes all entries of a folder as a function says, which is called by several at once.
func (s *still) take(root *beneath.Folder, how func(at string) seen) {
	for level := []string{""}; len(level) > 0 && s.left.Load() >= 0; {
		next := make([][]string, len(level))
		var at atomic.Int64
		take := func() {
			for i := at.Add(1) - 1; i < int64(len(level)); i = at.Add(1) - 1 {
				next[i] = s.folder(root, level[i], how)
			}
		}
		var beside sync.WaitGroup
		if len(level) > 1 {
			beside.Go(take)
		}
		take()
		beside.Wait()
		level = slices.Concat(next...)
	}
}

// folder notes what is in one folder, and returns the folders in it that are entered.
func (s *still) folder(root *beneath.Folder, rel string, how func(at string) seen) (below []string) {
	var above beneath.Entry
	if how(rel) == entered {
		above, _ = root.Look(cmp.Or(strings.TrimPrefix(rel, "/"), "."))
	}
	f, err := root.Sub(cmp.Or(strings.TrimPrefix(rel, "/"), "."))
	if err != nil {
		s.fail()
		return nil
	}
	defer f.Close()
	names, err := f.Names(".", int(max(s.left.Load(), 0)))
	if err != nil {
		s.fail()
		return nil
	}
	slices.Sort(names)
	newest, hash, line := above.Stamp.Change, sha256.New(), []byte(nil)
	for _, name := range names {
		at := rel + "/" + name
		is := how(at)
		if is == unseen {
			continue
		}
		what, err := f.Look(name)
		if s.left.Add(-1) < 0 || err != nil {
			s.fail()
			return nil
		}
		newest = max(newest, what.Stamp.Change)
		if what.Kind == beneath.Dir {
			// What is made or taken away in it is noted itself.
			what.Stamp.Size, what.Stamp.Change = 0, 0
			switch is {
			case entered:
				below = append(below, at)
			case nonempty:
				if _, err := f.Names(name, 0); err != nil {
					what.Stamp.Size = 1
				}
			}
		}
		line = append(append(line[:0], name...), 0)
		for _, n := range []uint64{
			uint64(what.Kind), uint64(what.Perm), what.Stamp.Ino, uint64(what.Stamp.Size), uint64(what.Stamp.Change),
			what.Stamp.Sum,
		} {
			line = binary.LittleEndian.AppendUint64(line, n)
		}
		hash.Write(line)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = max(s.newest, newest)
	s.folders = append(s.folders, root.Path()+rel+"\x00"+string(hash.Sum(nil)))
	return below
}

// takeTree notes a working tree, of which git ignores some folders as a whole. Of one with a repository in it, or a
// submodule, nothing is known.
func (s *still) takeTree(f *beneath.Folder, ignored []string) {
	s.take(f, func(at string) seen {
		switch _, isIgnored := slices.BinarySearch(ignored, strings.TrimPrefix(at, "/")); {
		case at == "/.git":
			return unseen
		case isIgnored:
			return nonempty
		case strings.HasSuffix(at, "/.git"), at == "/.gitmodules":
			s.fail()
		}
		return entered
	})
}

// takeGit notes what of a git folder says what is committed, staged, ignored and checked out where.
func (s *still) takeGit(f *beneath.Folder) {
	s.take(f, func(at string) seen {
		switch top, _, _ := strings.Cut(strings.TrimPrefix(at, "/"), "/"); top {
		case "objects", "logs", "hooks", "modules", "lfs":
			return unseen
		case "refs", "reftable", "info", "worktrees":
			return entered
		}
		return noted
	})
}

// key returns what identifies the state, and a script whose answer depends on it; empty: it is not known.
func (s *still) key(script string) string {
	if s.left.Load() < 0 {
		return ""
	}
	slices.Sort(s.folders)
	return fmt.Sprintf("%x", sha256.Sum256([]byte(script+"\x00"+strings.Join(s.folders, "\x00"))))
}

// known is an answer of git's that is kept, in a file of the branch's own folder, which no agent has.
type known struct {
	Key     string
	Answer  string
	Ignored []string        // folders of which it is not known what is in them, sorted
	Folders []survey.Folder // of the working tree
}

// find returns the answer that is kept in a file; the zero value: there is none.
func find(file string) (k known) {
	if !cachefile.Find(file, &k) {
		return known{}
	}
	return k
}

// keep writes an answer that was asked for at a time, with the state after it. They belong together only if nothing had
// changed for a while when it was asked, nor since.
func keep(file string, asked time.Time, after *still, script string, k known) {
	if k.Key = after.key(script); k.Key != "" && beneath.IsSettled(after.newest, asked.UnixNano()) {
		cachefile.Keep(file, k)
	}
}
