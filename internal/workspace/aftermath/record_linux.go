package aftermath

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/linux/identity"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/guard"
	"claudebox/internal/workspace/handover"
	"claudebox/internal/workspace/project"
)

const (
	sessions   = "sessions"
	recordForm = "claudebox session 22\n" // before the record; another form, another number
	formBefore = "claudebox session 21\n" // before a [recordBefore]
	privateDir = 0o700
)

// record is what is kept of a session while it lives. A record that cannot be read is an unfinished session: it stays.
type record struct {
	Noted
	Places []string // the user's git folders, of which the agent had its own
	Held   string   // the folder with what was held back while it ran; empty: nothing was

	made   []string               // git places that the user has made while it ran
	kept   map[identity.ID]string // git folders that the user has made, if it was killed, see [Session.KeepUsers]
	unseen []string               // folders that its agent did not see
	beside []record               // sessions that live while this one is looked after
	// strange says that sessions live whose records this claudebox cannot read.
	strange bool
	// replaced says that another folder lies at the project's path, which is none of this session's.
	replaced bool
	known    func() handover.Known // of all sessions
	since    int64                 // when it began, in nanoseconds since 1970: what changed later may be the agent's
}

// Noted is what was in the project before the session, and whose session it is.
type Noted struct {
	Began         moment
	Scope         project.Scope
	Inode         uint64 // of the project's folder
	ID            identity.ID
	Before        git.Snapshot
	Tracked       []string // what git's indexes held
	Covered       []string // what was read-only or hidden, relative to the project
	Hidden        []string // what of it was hidden
	Inodes        []uint64 // of what was covered
	Ignoring      []ignoring
	Closed        []string // folders that could not be read
	Cut           bool     // the project was too large to be looked at as a whole
	Watched       watched
	Instance      string   // the agent's own folder
	Conversations []string // the user's folders of them where the agent writes
	Filled        []filled // git places in folders that tools fill, as far as they were known
}

// filled is a git place in a folder that tools fill.
type filled struct {
	Rel   string
	Inode uint64
}

// isUsers reports whether a path is in a git folder of the user's, which did not enter the sandbox.
func (was record) isUsers(at string) bool {
	return slices.ContainsFunc(was.Places, func(place string) bool { return pathname.Below(at, place) })
}

// leadsToUsers reports whether a path to which something leads is in a git folder of the user's, or nowhere outside:
// something was held back there, or will be a part of a repository that has become the user's in another folder.
func (was record) leadsToUsers(at string) bool {
	if was.isUsers(at) || guard.Thing(at) != "" {
		return true
	}
	outer, _, _ := strings.Cut(strings.ReplaceAll(at, "/modules/", "/worktrees/"), "/worktrees/")
	_, err := os.Lstat(at)
	return outer != at && errors.Is(err, fs.ErrNotExist) && was.known != nil && was.known().Has(outer)
}

// isUnseen reports whether a path of the project lies where the agent had a folder of its own.
func (was record) isUnseen(rel string) bool {
	at := path.Join(was.Scope.Path, rel)
	return slices.ContainsFunc(was.unseen, func(dir string) bool { return pathname.Below(at, dir) })
}

// shared reports whether a session that lives has a path, too. A file there that something may still need is left to
// the end of that session.
func (was record) shared(file string) bool {
	return slices.ContainsFunc(was.beside, func(r record) bool { return r.has(file) })
}

// has reports whether the session's agent could write at a path, or below its repository.
func (was record) has(file string) bool {
	return !was.replaced && pathname.Below(file, was.Scope.Path) ||
		was.Scope.Common != "" && pathname.Below(file, was.Scope.Common)
}

// moment is what two clocks said at once.
type moment struct {
	Wall int64 // nanoseconds since 1970
	Up   int64 // nanoseconds since the machine was started: nobody sets this clock
}

func now() moment {
	var up unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) // Linux has it
	return moment{time.Now().UnixNano(), up.Nano()}
}

// begun sets was.since, before a session is reviewed. The machine's clock may have been set back meanwhile, and that of
// a file system may be behind it, which the time of the record's own file shows.
func (was *record) begun(file *os.File) {
	now, since := now(), was.Began.Wall
	if passed := now.Up - was.Began.Up; passed >= 0 { // else it began before the machine was started
		since = min(since, now.Wall-passed)
	}
	if info, err := file.Stat(); err == nil {
		since = min(since, info.ModTime().UnixNano())
	}
	was.since = since - slack.Nanoseconds()
}

// slack is how much earlier than it began a session counts as begun.
const slack = time.Second

// stored is what a file holds that [store] wrote.
type stored[T any] struct {
	value T
	other []byte   // what it holds that is not in this form; nil: it is
	file  *os.File // locked, unless live
	live  bool     // whoever wrote it still lives
}

// store writes a value, after its form, into a new file of a folder. The file stays locked until this process closes it
// or ends.
func store(dir, form string, value any) (*os.File, error) {
	f, err := newFile(dir)
	if err != nil {
		return nil, err
	}
	if _, err := f.WriteAt(encoded(form, value), 0); err != nil {
		os.Remove(f.Name())
		f.Close()
		return nil, err
	}
	return f, nil
}

// store writes the record of a session that begins, from which on an end sees it. ends are as [Agent.Ends].
func (was record) store(home string, ends []string) (*os.File, error) {
	folder := path.Join(home, sessions)
	f, err := store(folder, recordForm, was)
	if err != nil {
		return nil, failed(folder, err)
	}
	if err := refuseEnding(home, was.Scope.Path, ends); err != nil {
		os.Remove(f.Name())
		release(f)
		return nil, err
	}
	return f, nil
}

func encoded(form string, value any) []byte { return append([]byte(form), cachefile.Encode(value)...) }

// load returns what [store] wrote into files of a folder. Of a file that is not in this form it returns what it holds.
// The caller closes them.
func load[T any](dir, form string) (list []stored[T], err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		f, locked, fault := lock(path.Join(dir, e.Name()))
		if errors.Is(fault, fs.ErrNotExist) {
			continue // its session has just ended
		}
		if fault != nil {
			err = errors.Join(err, fault)
			continue
		}
		s := stored[T]{file: f, live: !locked}
		content, fault := io.ReadAll(f)
		body, ok := bytes.CutPrefix(content, []byte(form))
		if fault != nil || !ok || !cachefile.Decode(body, &s.value) {
			s.other = append([]byte{}, content...)
		}
		list = append(list, s)
	}
	return list, err
}

// newFile makes a file and locks it. If another launch found it before it was locked, that launch has removed it as one
// of a dead session; then it makes another.
func newFile(dir string) (*os.File, error) {
	if err := os.Mkdir(dir, privateDir); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	for {
		f, err := os.OpenFile(path.Join(dir, rand.Text()[:16]), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, err
		}
		var st unix.Stat_t
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && unix.Fstat(int(f.Fd()), &st) == nil && st.Nlink > 0 {
			return f, nil
		}
		f.Close()
		if err != nil && !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, err
		}
	}
}

// madeFile is the file with what [Session.KeepUsers] notes of the session of a record.
func madeFile(record *os.File) string {
	sessions, name := path.Split(record.Name())
	return path.Join(sessions, "../made", name)
}

// drop removes a record.
func drop(record *os.File) {
	_ = os.Remove(record.Name())
	_ = os.Remove(madeFile(record)) // most have none
}

// onDiskAfter is when a record goes to the disk: a power cut must not turn what the agent made into the user's. It
// takes up to some ten milliseconds, for which a start, or a short command, is not to wait.
const onDiskAfter = 20 * time.Millisecond

// onDisk writes the file, and its name in the folder, to the disk. After a power cut, a record that was being written
// for the first time counts as none, and by then the agent has hardly begun; so one name is enough.
func onDisk(file string) {
	for _, name := range []string{file, path.Dir(file)} {
		if f, err := os.Open(name); err == nil { // not the locked one: its lock is to go when it is closed
			_ = f.Sync() // whoever ends the session does not need it
			f.Close()
		}
	}
}

// lock opens a file that [store] wrote. locked is false if whoever wrote it still lives.
func lock(file string) (f *os.File, locked bool, err error) {
	fd, err := unix.Open(file, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false, err
	}
	_ = unix.SetNonblock(fd, false) // else the runtime prepares for waiting, which it need not before a start
	f = os.NewFile(uintptr(fd), file)
	return f, unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil, nil
}

func failed(file string, err error) error {
	if known := (*diag.Error)(nil); errors.As(err, &known) {
		return err
	}
	return &diag.Error{
		Op: "note what is in the project before the session in " + file, Err: err,
		Remedy: "make room there, and the folder writable for you",
	}
}

// remains are what a session left that did not end by itself. The file is locked.
type remains struct {
	record
	file *os.File
}

// others returns the records of sessions that live, and of those that are dead; and how many live and which are dead
// whose records this claudebox cannot read.
func others(home string) (live []record, dead []remains, strange strangers) {
	list, err := load[record](path.Join(home, sessions), recordForm)
	strange.fault = err
	for _, s := range list {
		r := s.value
		if s.other != nil {
			body, before := bytes.CutPrefix(s.other, []byte(formBefore))
			var was recordBefore
			if !before || !cachefile.Decode(body, &was) {
				strange.add(s.file, s.live, s.other)
				continue
			}
			r = was.record()
		}
		if s.live {
			live = append(live, r)
			s.file.Close()
			continue
		}
		r.replaced = r.isReplaced()
		dead = append(dead, remains{r, s.file})
	}
	return live, dead, strange
}

// strangers are sessions whose records this claudebox cannot read.
type strangers struct {
	live  int
	dead  []string // their files
	fault error    // why not even all files could be looked at
}

// add notes one. A file in which nothing was written yet is a session that had not begun: a power cut, or one that
// begins just now.
func (s *strangers) add(f *os.File, live bool, content []byte) {
	switch {
	case live:
		s.live++
		f.Close()
		return
	case len(content) == 0:
		os.Remove(f.Name())
	default:
		s.dead = append(s.dead, f.Name())
	}
	release(f)
}

// ErrUnread is in the error of [Begin] about a session of which nothing is known.
var ErrUnread = errors.New("another claudebox wrote it, or it is damaged: what that session left may not be harmless")

// refuse returns an error if there is a dead session of which nothing is known.
func (s strangers) refuse() error {
	file := ""
	if len(s.dead) > 0 {
		file = s.dead[0]
	}
	switch {
	case file != "":
		return &diag.Error{
			Op: "read the record of an unfinished session, " + file, Err: ErrUnread,
			Remedy: "start the claudebox that wrote it once, in any folder; or look through your projects, " +
				"and remove that file",
		}
	case s.fault != nil:
		return diag.Wrap("read the records of sessions", s.fault, "make them readable for you")
	}
	return nil
}

func closeAll(dead []remains) {
	for _, r := range dead {
		release(r.file)
	}
}

// release closes a record's file after unlocking it. Closing alone does not unlock it at once: a program that is being
// started still has all files open that were open when it was forked, for some milliseconds.
func release(f *os.File) {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	f.Close()
}

// inherited replaces, in a snapshot, what lies where another session lives or was not reviewed by what that session saw
// before: what its agent made is not the user's.
func inherited(before git.Snapshot, others []record) git.Snapshot {
	for _, r := range others {
		out := func(at string) bool { return !r.has(at) }
		before = before.Without(r.has).And(r.Before.Without(out))
	}
	return before
}

const (
	// waitLimit is how many records are kept while their projects are away; each costs a launch some 50 µs.
	waitLimit = 16
	// waitFor is how long a record is kept. A project that is away for longer counts as deleted: whatever is at its
	// path later is another project.
	waitFor = 30 * 24 * time.Hour
)

// bound removes the records of sessions whose projects are away that are too old, and the oldest if they are too many.
func bound(waiting []remains, now time.Time) {
	slices.SortFunc(waiting, func(a, b remains) int { return cmp.Compare(b.Began.Wall, a.Began.Wall) })
	for n, r := range waiting {
		if n >= waitLimit || now.Sub(time.Unix(0, r.Began.Wall)) > waitFor {
			drop(r.file)
		}
	}
}

// find opens the folder that the session had, wherever it is now: at its path, under another name beside that, or at or
// above one of the folders near. It returns nil if the folder is not found. Another folder at the same path counts, as
// after restoring a backup, unless it was made since.
func (was record) find(near []string) *beneath.Folder {
	for _, place := range was.candidates(near) {
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
	names, err := at.Names(".", 1)
	if was.replaced || err == nil && len(names) == 0 { // where a disk is mounted at other times
		at.Close()
		return nil
	}
	return at
}

// isReplaced reports whether another folder lies at the session's path, which was made later, as by `git clone`: all
// that is in it and in its .git is younger than the session. What comes from a backup has times of before.
func (was record) isReplaced() bool {
	at, err := beneath.Open(was.Scope.Path)
	if err != nil {
		return false
	}
	defer at.Close()
	root, err := at.Look(".")
	if err != nil || was.ID == "" || identity.Of(at.FD()) == was.ID || root.Stamp.Ino == was.Inode {
		return false
	}
	const most = 2000
	for _, dir := range []string{".", ".git"} {
		names, _ := at.Names(dir, most)
		for _, name := range names {
			info, err := os.Lstat(inside(at, path.Join(dir, name)))
			if err == nil && info.ModTime().UnixNano() < was.Began.Wall {
				return false
			}
		}
	}
	return true
}

// candidates lists where the folder may be.
func (was record) candidates(near []string) []string {
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
