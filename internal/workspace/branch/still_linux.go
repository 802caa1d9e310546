package branch

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/cachefile"
)

// What git says of a repository and a working tree it says again as long as nothing in them has changed. A start and an
// end at which that is so ask nobody: a box with git takes half as long as all the rest of a start.

const (
	// mostStill is how many files and folders are looked at. Of more, git is asked.
	mostStill = 2000
	// settled is how long ago the last change must be: one of the same moment could not be told from it.
	settled = 50 * time.Millisecond
)

// still is the state of folders, as it is collected.
type still struct {
	text   strings.Builder
	left   int       // how many entries are looked at yet; below 0: there are more, or something cannot be known
	newest time.Time // of the changes
}

// open notes a folder at a path.
func (s *still) open(at string, take func(*beneath.Folder)) {
	f, err := beneath.Open(at)
	if err != nil {
		s.left = -1
		return
	}
	defer f.Close()
	take(f)
}

// take notes all entries of a folder that a function wants, and goes into those that it enters.
func (s *still) take(f *beneath.Folder, at string, entered func(at string) (noted, enters bool)) {
	names, err := f.Names(".", max(s.left, 0))
	if err != nil {
		s.left = -1
		return
	}
	slices.Sort(names)
	for _, name := range names {
		rel := at + "/" + name
		what, err := f.Look(name)
		noted, enters := entered(rel)
		if !noted {
			continue
		}
		if s.left--; err != nil || s.left < 0 {
			s.left = -1
			return
		}
		if what.Kind == beneath.Dir { // what is made or taken away in it is noted itself
			what.Stamp.Size, what.Stamp.Change = 0, 0
		}
		s.newest = later(s.newest, time.Unix(0, what.Stamp.Change))
		fmt.Fprintf(&s.text, "%q %d %o %d %d %d %d\n", rel, what.Kind, what.Perm, what.Stamp.Ino, what.Stamp.Size,
			what.Stamp.Change, what.Stamp.Sum)
		if !enters || what.Kind != beneath.Dir {
			continue
		}
		sub, err := f.Sub(name)
		if err != nil {
			s.left = -1
			return
		}
		s.take(sub, rel, entered)
		sub.Close()
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// takeTree notes a working tree. Of one with a repository in it, or a submodule, nothing is known.
func (s *still) takeTree(f *beneath.Folder) {
	s.take(f, "", func(at string) (noted, enters bool) {
		if strings.HasSuffix(at, "/.git") && at != "/.git" || at == "/.gitmodules" {
			s.left = -1
		}
		return at != "/.git", true
	})
}

// takeGit notes what of a git folder says what is committed, staged, ignored and checked out where.
func (s *still) takeGit(f *beneath.Folder) {
	s.take(f, "", func(at string) (noted, enters bool) {
		top, _, _ := strings.Cut(at[1:], "/")
		switch top {
		case "objects", "logs", "hooks", "modules", "lfs":
			return false, false
		}
		return true, top == "refs" || top == "reftable" || top == "info" || top == "worktrees"
	})
}

// key returns what identifies the state, and a script whose answer depends on it; empty: it is not known.
func (s *still) key(script string) string {
	if s.left < 0 {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(script+"\x00"+s.text.String())))
}

// known is an answer of git's that is kept, in a file of the branch's own folder, which no agent has.
type known struct {
	Key    string
	Answer string
}

// keep writes an answer, if the state was the same before and after it was given, and has been for a while.
func keep(file, before string, after *still, script, answer string) {
	if before != "" && after.key(script) == before && time.Since(after.newest) > settled {
		cachefile.Keep(file, known{before, answer})
	}
}

// keptAnswer returns the answer that is kept for a state.
func keptAnswer(file, key string) (answer string, is bool) {
	var k known
	is = key != "" && cachefile.Find(file, &k) && k.Key == key
	return k.Answer, is
}
