package survey

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
)

// Question is what a walk looks for.
type Question struct {
	// Wanted gives, for a folder by its path from the root ("." for the root
	// itself), what tells the names that are to be noted in it, those of folders
	// and of all else. It is called once for each folder, what it gives once for
	// each name. Nil wants nothing, and pipes are noted all the same: whoever opens
	// one waits.
	Wanted func(folder string) func(name []byte, dir bool) bool
	// Skipped folders are not entered. Folders named .git never are.
	Skipped []string
	// From are the folders where the walk begins; the root, if there are none.
	From []string
	// Limit is how many entries are looked at before the walk ends. What is
	// behind it is not known.
	Limit int
	// LinksSince notes symbolic links that were made then or later, in
	// nanoseconds since 1970, where the walk lists a folder; 0: none.
	LinksSince int64
}

// Everything is a [Question.Wanted] that notes every name.
func Everything(string) func([]byte, bool) bool { return func([]byte, bool) bool { return true } }

// File is a wanted name.
type File struct {
	Rel  string
	Kind beneath.Kind
	Exec bool // somebody may execute it
	// Names counts hard links.
	Names uint64
	Stamp beneath.Stamp
}

// Survey is what a walk saw. Paths are relative to the root and in order.
type Survey struct {
	Git      []string // entries named .git, of any kind
	Bare     []string // folders that git takes for a repository by what is in them
	Sockets  []string
	Files    []File
	NewLinks []string // see [Question]
	Cut      bool     // the limit was reached
	Closed   []string // folders of this user that cannot be read
	Skipped  []string // folders that were not entered
	Same     bool     // all is what the walk before saw

	folders map[string]*folder
}

// folder is one folder of a walk, which does not change any more. Its fields are
// exported for package packed.
type folder struct {
	Rel      string
	Stamp    beneath.Stamp // zero: list it again whatever it says
	Folders  []string      // paths of those to be entered
	Files    []File
	NewLinks []string
	Git      []string
	Bare     bool
	Sockets  []string
	Skipped  []string
	Closed   bool
	Entries  int
}

// Walk looks at everything below root. before is what an earlier walk by the
// same question saw, or nil.
func Walk(root *beneath.Folder, q Question, before *Survey) *Survey {
	w := walker{root: root, Question: q, before: before, now: time.Now().UnixNano()}
	s := &Survey{folders: map[string]*folder{}}
	if before != nil {
		s.folders = make(map[string]*folder, len(before.folders))
	}
	level := []string{"."}
	if len(q.From) > 0 {
		level = q.From
	}
	for left := q.Limit; len(level) > 0; {
		var next []string
		for _, f := range w.look(level) {
			if left -= f.Entries; left < 0 {
				s.Cut = true
				break
			}
			s.folders[f.Rel] = f
			s.add(f)
			next = append(next, f.Folders...)
		}
		if s.Cut {
			break
		}
		level = next
	}
	s.Same = before != nil && !w.changed.Load()
	s.sort()
	return s
}

// All lists every name below folders of a root; below the root itself, if there
// are none.
func All(root *beneath.Folder, limit int, from ...string) *Survey {
	return Walk(root, Question{From: from, Wanted: Everything, Limit: limit}, nil)
}

// ChangedSince reports whether a folder that was walked, or a file that was
// noted, was changed at a time or later, in nanoseconds since 1970. What is not
// known counts as changed; folders that are left out do not.
func (s *Survey) ChangedSince(since int64, out func(folder string) bool) bool {
	if s.Cut || len(s.Closed) > 0 {
		return true
	}
	for _, f := range s.folders {
		if (f.Stamp.Change == 0 || f.Stamp.Change >= since) && !out(f.Rel) {
			return true
		}
	}
	return slices.ContainsFunc(s.Files, func(f File) bool { return f.Kind != beneath.Dir && f.Stamp.Change >= since })
}

// Saw reports whether a folder was looked into.
func (s *Survey) Saw(rel string) bool { return s != nil && s.folders[rel] != nil }

// Where gives the folder with an inode's number, if one was looked into.
func (s *Survey) Where(inode uint64) (rel string, found bool) {
	for _, f := range s.folders {
		if f.Stamp.Ino == inode {
			return f.Rel, true
		}
	}
	return "", false
}

func (s *Survey) add(f *folder) {
	s.Git = append(s.Git, f.Git...)
	if f.Bare {
		s.Bare = append(s.Bare, f.Rel)
	}
	if f.Closed {
		s.Closed = append(s.Closed, f.Rel)
	}
	s.Sockets = append(s.Sockets, f.Sockets...)
	s.Skipped = append(s.Skipped, f.Skipped...)
	s.Files = append(s.Files, f.Files...)
	s.NewLinks = append(s.NewLinks, f.NewLinks...)
}

func (s *Survey) sort() {
	slices.Sort(s.Git)
	slices.Sort(s.Bare)
	slices.Sort(s.Sockets)
	slices.Sort(s.Closed)
	slices.Sort(s.Skipped)
	slices.Sort(s.NewLinks)
	slices.SortFunc(s.Files, func(a, b File) int { return strings.Compare(a.Rel, b.Rel) })
}

type walker struct {
	Question
	root    *beneath.Folder
	before  *Survey
	now     int64       // nanoseconds since 1970
	changed atomic.Bool // something is not as it was before
}

// listings are the buffers for what is in a folder: most walks are short, and
// there are many.
var listings = sync.Pool{New: func() any { return new([listing]byte) }}

const listing = 8 << 10 // bytes

// alone is how many folders one goroutine looks at before a second one pays,
// and how many either takes at a time.
const alone = 64

// look looks at the folders of one level.
func (w *walker) look(level []string) []*folder {
	seen := make([]*folder, len(level))
	if len(level) < alone {
		w.lookAt(level, seen)
		return seen
	}
	var both sync.WaitGroup
	var taken atomic.Int64
	take := func() {
		for {
			end := int(taken.Add(alone))
			if end-alone >= len(level) {
				return
			}
			w.lookAt(level[end-alone:min(end, len(level))], seen[end-alone:])
		}
	}
	both.Go(take)
	take()
	both.Wait()
	return seen
}

func (w *walker) lookAt(rels []string, seen []*folder) {
	buffer := listings.Get().(*[listing]byte)
	defer listings.Put(buffer)
	for i, rel := range rels {
		if seen[i] = w.again(rel); seen[i] == nil {
			w.changed.Store(true)
			seen[i] = w.list(rel, buffer[:])
		}
	}
}

// again takes what an earlier walk saw of a folder that has not been changed
// since; nil: it has. Files are looked at once more: their folder tells nothing of
// them. To go by path is safe: a folder on the way that became a link has changed
// the one it lies in, which was looked at before.
func (w *walker) again(rel string) *folder {
	if w.before == nil {
		return nil
	}
	was := w.before.folders[rel]
	var st unix.Stat_t
	if was == nil || was.Stamp.Ino == 0 || unix.Fstatat(w.root.FD(), rel, &st, unix.AT_SYMLINK_NOFOLLOW) != nil ||
		stampOf(&st) != was.Stamp {
		return nil
	}
	var files []File
	for _, file := range was.Files {
		if unix.Fstatat(w.root.FD(), file.Rel, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
			files = append(files, fileOf(file.Rel, &st))
		}
	}
	same := slices.Equal(files, was.Files)
	if !same {
		w.changed.Store(true)
	}
	if same && len(was.NewLinks) == 0 {
		return was
	}
	now := *was
	now.Files, now.NewLinks = files, nil // links are new once
	return &now
}

// recent is how far apart, in nanoseconds, a look at a folder and a change in
// it must be for the time of change to tell. Kernels before 6.13 count it in
// ticks of up to ten milliseconds.
const recent = 20_000_000

func stampOf(st *unix.Stat_t) beneath.Stamp {
	return beneath.Stamp{Ino: st.Ino, Size: st.Size, Change: st.Ctim.Nano()}
}

func fileOf(rel string, st *unix.Stat_t) File {
	return File{
		Rel: rel, Kind: beneath.KindOf(st.Mode), Exec: st.Mode&0o111 != 0 && st.Mode&unix.S_IFMT == unix.S_IFREG,
		Names: uint64(st.Nlink), Stamp: stampOf(st),
	}
}

// list reads a folder. Its stamp is taken before: what changes meanwhile shows.
func (w *walker) list(rel string, buffer []byte) *folder {
	f := &folder{Rel: rel}
	fd, err := w.root.OpenFD(f.Rel, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		var st unix.Stat_t
		f.Closed = unix.Fstatat(w.root.FD(), f.Rel, &st, unix.AT_SYMLINK_NOFOLLOW) == nil &&
			st.Mode&unix.S_IFMT == unix.S_IFDIR && int(st.Uid) == unix.Getuid()
		return f
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err == nil {
		// What can be listed and not entered tells names only.
		f.Closed = st.Mode&unix.S_IXUSR == 0 && int(st.Uid) == unix.Getuid()
		if w.now-st.Ctim.Nano() > recent && !f.Closed {
			f.Stamp = stampOf(&st)
		}
	}
	l := lister{walker: w, folder: f, fd: fd}
	if w.Wanted != nil {
		l.wanted = w.Wanted(f.Rel)
	}
	for f.Entries <= w.Limit {
		n, err := unix.Getdents(fd, buffer)
		if err != nil || n <= 0 {
			break
		}
		l.entries(buffer[:n])
	}
	f.Bare = l.head && (l.commondir || l.objects && l.refs)
	return f
}
