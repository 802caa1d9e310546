// Package survey walks a project once and says what in it matters to a
// sandbox: places of git, sockets, and files by name.
//
// It imports beneath, cachefile and golang.org/x/sys/unix, and trusts nothing it sees: an agent wrote there. It walks
// level by level, so that what is near the root is seen first, follows no link, and stops after a number of entries. A
// second walk lists only the folders that were changed since the first: no program can set a folder's time of change
// (inode(7), st_ctim).
package survey

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/cachefile"
)

// Wanted returns, for a folder by its path from the root ("." for the root itself), a function that chooses the names
// in it that are noted; dir says that a name is a folder's. Wanted is called once for each folder, and the function
// once for each name in it.
type Wanted func(folder string) func(name string, dir bool) bool

// Question is what a walk looks for.
type Question struct {
	Wanted  Wanted   // nil: no names. Pipes are always noted, because whoever opens one waits
	Skipped []string // folders that are not entered; those named .git never are
	Entered []string // paths of some that are entered all the same, sorted
	Apart   []string // paths of folders that are not entered either, and not noted
	From    []string // where the walk begins; the root, if there are none
	Limit   int      // how many entries are looked at
	// LinksSince has symbolic links noted that were made then or later, in nanoseconds since 1970, if they lie in
	// folders that the walk lists; 0: none.
	LinksSince int64
}

func (q Question) enters(rel string) bool {
	_, is := slices.BinarySearch(q.Entered, rel)
	return is
}

// Everything is a [Question.Wanted] that notes every name.
func Everything(string) func(string, bool) bool { return func(string, bool) bool { return true } }

// File is a wanted name.
type File struct {
	Rel   string
	Kind  beneath.Kind
	Exec  bool   // somebody may execute it
	Names uint64 // hard links
	Stamp beneath.Stamp
}

// Found is what a walk noted in one folder, or in all. Paths are relative to the root.
type Found struct {
	Git      []string // entries named .git, of any kind
	Bare     []string // folders that git takes for a repository by what is in them
	Closed   []string // folders of this user that cannot be read
	Sockets  []string
	Skipped  []string // folders that were not entered
	NewLinks []string // see [Question]
	Files    []File
}

// Survey is what a walk saw. Its lists are sorted.
type Survey struct {
	Found
	Cut  bool // the limit was reached
	Same bool // nothing has changed since the walk before

	folders map[string]*Folder
}

// Folder is what a walk saw of one folder. It does not change any more.
type Folder struct {
	Rel     string
	Dev     uint64        // device
	Stamp   beneath.Stamp // zero: the next walk lists the folder again in any case
	Folders []string      // paths of those to be entered
	Entries int
	Found   Found
}

// Code is for [cachefile.Encode].
func (f *Folder) Code(c *cachefile.Codec) {
	c.Text(&f.Rel)
	c.Uint(&f.Dev)
	codeStamp(c, &f.Stamp)
	cachefile.List(c, &f.Folders, c.Text)
	cachefile.Int(c, &f.Entries)
	in := &f.Found
	for _, list := range []*[]string{&in.Git, &in.Bare, &in.Closed, &in.Sockets, &in.Skipped, &in.NewLinks} {
		cachefile.List(c, list, c.Text)
	}
	cachefile.List(c, &in.Files, func(f *File) {
		c.Text(&f.Rel)
		cachefile.Int(c, &f.Kind)
		c.Bool(&f.Exec)
		c.Uint(&f.Names)
		codeStamp(c, &f.Stamp)
	})
}

func codeStamp(c *cachefile.Codec, s *beneath.Stamp) {
	c.Uint(&s.Ino)
	cachefile.Int(c, &s.Size)
	cachefile.Int(c, &s.Change)
	c.Uint(&s.Sum)
}

// Pipes lists the pipes in a folder, below some paths in it or anywhere, at which whoever opens one waits. It does not
// enter what is named .git, and lists that.
func Pipes(root *beneath.Folder, from ...string) (pipes, git []string) {
	const limit = 2_000_000
	seen := Walk(root, Question{From: from, Limit: limit}, nil)
	for _, f := range seen.Files {
		if f.Kind == beneath.Special {
			pipes = append(pipes, f.Rel)
		}
	}
	return pipes, seen.Git
}

// Walk looks at everything below root. before is what an earlier walk by the same question saw, or nil.
func Walk(root *beneath.Folder, q Question, before *Survey) *Survey {
	w := walker{root: root, Question: q, before: before, now: time.Now().UnixNano()}
	s := &Survey{folders: map[string]*Folder{}}
	if before != nil {
		s.folders = make(map[string]*Folder, len(before.folders))
	}
	level, left := q.From, q.Limit
	if len(level) == 0 {
		level = []string{"."}
	}
	var seen []*Folder
	for len(level) > 0 && !s.Cut {
		var next []string
		for _, f := range w.look(level) {
			if left -= f.Entries; left < 0 {
				s.Cut = true
				break
			}
			s.folders[f.Rel] = f
			seen = append(seen, f)
			next = append(next, f.Folders...)
			for _, rel := range f.Found.Skipped {
				if q.enters(rel) {
					next = append(next, rel)
				}
			}
		}
		level = next
	}
	s.gather(seen)
	s.Same = before != nil && !w.changed.Load()
	s.Skipped = slices.DeleteFunc(s.Skipped, q.enters)
	for _, list := range [][]string{s.Git, s.Bare, s.Closed, s.Sockets, s.Skipped, s.NewLinks} {
		slices.Sort(list)
	}
	slices.SortFunc(s.Files, byRel)
	return s
}

func byRel(a, b File) int { return strings.Compare(a.Rel, b.Rel) }

// gather collects what was noted in folders.
func (f *Found) gather(folders []*Folder) {
	files := 0
	for _, in := range folders {
		files += len(in.Found.Files)
	}
	f.Files = slices.Grow(f.Files, files)
	for _, in := range folders {
		f.add(&in.Found)
	}
}

func (f *Found) add(more *Found) {
	f.Git = append(f.Git, more.Git...)
	f.Bare = append(f.Bare, more.Bare...)
	f.Closed = append(f.Closed, more.Closed...)
	f.Sockets = append(f.Sockets, more.Sockets...)
	f.Skipped = append(f.Skipped, more.Skipped...)
	f.NewLinks = append(f.NewLinks, more.NewLinks...)
	f.Files = append(f.Files, more.Files...)
}

// All lists every name below folders of a root; below the root itself, if there are none.
func All(root *beneath.Folder, limit int, from ...string) *Survey {
	return Walk(root, Question{From: from, Wanted: Everything, Limit: limit}, nil)
}

// OpenUntil calls look, which returns folders that an agent has closed, opens these, and calls it again until there are
// none, or they cannot be opened.
func OpenUntil(root *beneath.Folder, look func() (closed []string)) {
	const rounds = 20
	for range rounds {
		opened := false
		for _, dir := range look() {
			if root.Chmod(dir, ownersAll) == nil {
				opened = true
				openBelow(root, dir)
			}
		}
		if !opened {
			return
		}
	}
}

const ownersAll = 0o700

// openBelow opens the closed folders below one: an agent can close any number in each other.
func openBelow(root *beneath.Folder, dir string) {
	const most = 1 << 20
	names, _ := root.Names(dir, most)
	for _, name := range names {
		below := path.Join(dir, name)
		if what, err := root.Look(below); err == nil && what.Kind == beneath.Dir &&
			(what.Perm&ownersAll == ownersAll || root.Chmod(below, ownersAll) == nil) {
			openBelow(root, below)
		}
	}
}

// ChangedSince reports whether a folder that was walked, or a file that was noted, was changed at a time or later, in
// nanoseconds since 1970. If not all was seen, it reports true. Folders for which out is true do not count.
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

// Listed returns what a walk that wanted every name but those of folders saw of one that it entered. It is nil if the
// folder was not entered, has more in it (entries of git's), or was changed so lately that another change may not show.
func (s *Survey) Listed(rel string) *Folder {
	f := s.folders[rel]
	if f == nil || f.Stamp.Ino == 0 || len(f.Found.Git) > 0 {
		return nil
	}
	return f
}

// Where returns the folder with an inode's number, if the walk looked into it.
func (s *Survey) Where(inode uint64) (rel string, found bool) {
	for _, f := range s.folders {
		if f.Stamp.Ino == inode {
			return f.Rel, true
		}
	}
	return "", false
}

// Large reports whether a survey is worth keeping: whether a new walk takes longer than reading it from a file.
func (s *Survey) Large() bool {
	const folders = 200
	return len(s.folders) > folders
}

// Entries returns how many entries the walk looked at.
func (s *Survey) Entries() (n int) {
	for _, f := range s.folders {
		n += f.Entries
	}
	return n
}

// Folders returns what was seen of each folder, in no order, for [Of].
func (s *Survey) Folders() []Folder {
	list := make([]Folder, 0, len(s.folders))
	for _, f := range s.folders {
		list = append(list, *f)
	}
	return list
}

// Of returns a survey for a later walk by the same question to go by.
func Of(folders []Folder) *Survey {
	s := &Survey{folders: make(map[string]*Folder, len(folders))}
	for i := range folders {
		s.folders[folders[i].Rel] = &folders[i]
	}
	return s
}

type walker struct {
	Question
	root    *beneath.Folder
	before  *Survey
	now     int64       // nanoseconds since 1970
	changed atomic.Bool // something is not as it was before
}

// alone is how many folders of one level a goroutine takes at a time. With fewer than that, a second goroutine costs
// more than it saves.
const alone = 64

// look looks at the folders of one level.
func (w *walker) look(level []string) []*Folder {
	seen := make([]*Folder, len(level))
	var taken atomic.Int64
	take := func() {
		for begin := int(taken.Add(alone)) - alone; begin < len(level); begin = int(taken.Add(alone)) - alone {
			for i, rel := range level[begin:min(begin+alone, len(level))] {
				at := &seen[begin+i]
				if *at = w.again(rel); *at == nil {
					w.changed.Store(true)
					*at = w.list(rel)
				}
			}
		}
	}
	var beside sync.WaitGroup
	if len(level) >= alone {
		beside.Go(take)
	}
	take()
	beside.Wait()
	return seen
}

// again returns what an earlier walk saw of a folder; nil if the folder was changed since. Its files are looked at once
// more, because a change of a file does not change its folder. Using the path is safe: a folder on the way that was
// replaced by a link has changed the one it lies in, which was looked at before.
func (w *walker) again(rel string) *Folder {
	if w.before == nil {
		return nil
	}
	was := w.before.folders[rel]
	var st unix.Stat_t
	if was == nil || was.Stamp.Ino == 0 || unix.Fstatat(w.root.FD(), rel, &st, unix.AT_SYMLINK_NOFOLLOW) != nil ||
		w.root.StampOf(rel, &st) != was.Stamp || st.Dev != was.Dev {
		return nil
	}
	files, same := was.Found.Files, true
	for i, file := range was.Found.Files {
		there := unix.Fstatat(w.root.FD(), file.Rel, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
		if same && there && w.fileOf(file.Rel, &st) == file {
			continue
		}
		if same {
			files, same = slices.Clone(files[:i]), false
			w.changed.Store(true)
		}
		if there {
			files = append(files, w.fileOf(file.Rel, &st))
		}
	}
	if same && len(was.Found.NewLinks) == 0 {
		return was
	}
	now := *was
	now.Found.Files, now.Found.NewLinks = files, nil // links are new once
	return &now
}

func (w *walker) fileOf(rel string, st *unix.Stat_t) File {
	return File{
		Rel: rel, Kind: beneath.KindOf(st.Mode), Exec: st.Mode&0o111 != 0 && st.Mode&unix.S_IFMT == unix.S_IFREG,
		Names: uint64(st.Nlink), Stamp: w.root.StampOf(rel, st),
	}
}

// list reads a folder. Its stamp is taken first, so that a change during the reading shows next time.
func (w *walker) list(rel string) *Folder {
	f := &Folder{Rel: rel}
	dir, err := w.root.OpenDir(rel)
	var st unix.Stat_t
	if err != nil {
		if unix.Fstatat(w.root.FD(), rel, &st, unix.AT_SYMLINK_NOFOLLOW) == nil &&
			st.Mode&unix.S_IFMT == unix.S_IFDIR && int(st.Uid) == unix.Getuid() {
			f.Found.Closed = []string{rel}
		}
		return f
	}
	defer dir.Close()
	if unix.Fstat(int(dir.Fd()), &st) == nil {
		switch {
		case st.Mode&unix.S_IXUSR == 0 && int(st.Uid) == unix.Getuid(): // a listing tells names only
			f.Found.Closed = []string{rel}
		case beneath.IsSettled(st.Ctim.Nano(), w.now):
			f.Dev, f.Stamp = st.Dev, w.root.StampOf(rel, &st)
		}
	}
	l := lister{walker: w, folder: f, fd: int(dir.Fd())}
	if w.Wanted != nil {
		l.wanted = w.Wanted(rel)
	}
	const some = 200 // entries at a time: a folder may have more than the limit
	for err == nil && f.Entries <= w.Limit {
		var entries []fs.DirEntry // fewer than asked for if some went meanwhile, not only at the end
		entries, err = dir.ReadDir(some)
		for _, e := range entries {
			l.entry(e.Name(), e.Type())
		}
	}
	slices.Sort(f.Folders) // so that what is collected of all is nearly sorted
	slices.SortFunc(f.Found.Files, byRel)
	const head, commondir, rest = 1, 2, 4 | 8 // of [signs]
	if l.signs&head != 0 && (l.signs&commondir != 0 || l.signs&rest == rest) {
		f.Found.Bare = []string{rel}
	}
	return f
}

// lister sorts the entries of one folder.
type lister struct {
	*walker
	folder *Folder
	fd     int
	wanted func(name string, dir bool) bool
	signs  int // a bit for each of [signs] that is there
}

// entry notes one name.
func (l *lister) entry(name string, kind fs.FileMode) {
	found := &l.folder.Found
	l.folder.Entries++
	if l.isDotGit(name) {
		found.Git = append(found.Git, l.join(name))
		return
	}
	switch {
	case kind == fs.ModeSocket:
		found.Sockets = append(found.Sockets, l.join(name))
	case kind == fs.ModeNamedPipe, l.wanted != nil && l.wanted(name, kind.IsDir()):
		if st, ok := l.stat(name); ok {
			found.Files = append(found.Files, l.fileOf(l.join(name), &st))
		}
	}
	switch {
	case kind == fs.ModeSymlink && l.LinksSince > 0:
		if st, ok := l.stat(name); ok && st.Ctim.Nano() >= l.LinksSince {
			found.NewLinks = append(found.NewLinks, l.join(name))
		}
	case !kind.IsDir(), l.tooDeep(name), slices.Contains(l.Apart, l.join(name)):
	case slices.Contains(l.Skipped, name):
		found.Skipped = append(found.Skipped, l.join(name))
	default:
		l.folder.Folders = append(l.folder.Folders, l.join(name))
	}
}

func (l *lister) stat(name string) (st unix.Stat_t, ok bool) {
	err := unix.Fstatat(l.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err == nil
}

func (l *lister) join(name string) string {
	if l.folder.Rel == "." {
		return name
	}
	return l.folder.Rel + "/" + name
}

// tooDeep reports whether a folder's path is longer than the kernel takes (path names, PATH_MAX). No program can name
// what is in there, git neither. To look costs the square of the depth, and an agent can make a depth that would take
// hours.
func (l *lister) tooDeep(name string) bool {
	return len(l.root.Path())+1+len(l.folder.Rel)+1+len(name) >= unix.PathMax
}

// signs are the names in a folder by which git takes it for a repository (setup.c, is_git_directory): HEAD and either
// commondir or both others.
var signs = []string{"HEAD", "commondir", "objects", "refs"}

// isDotGit reports whether a name is .git, and notes the names that make the folder a repository. Some folders take
// capitals for the same letters (casefold in ext4(5)), so this function always does.
func (l *lister) isDotGit(name string) bool {
	is := func(sign string) bool { return len(name) == len(sign) && strings.EqualFold(name, sign) }
	for n, sign := range signs {
		if is(sign) {
			l.signs |= 1 << n
		}
	}
	return is(".git")
}
