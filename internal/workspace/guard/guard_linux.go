// Package guard holds back, while a session runs, what its agent makes in a folder of the user's and what tools of the
// host obey without being asked: repositories, and the names of [hostrun.Unasked].
//
// It watches the folders, and exchanges such a name in one atomic step with a link (renameat2(2), RENAME_EXCHANGE). The
// link leads to where the thing lies now: in a folder of claudebox's that only the sandbox has at that path. So the
// agent goes on as if nothing had happened, and the host's tools find a link that leads nowhere, or git to a file at
// which it stops, see [Stops]. [BringOut] puts everything back when the session is over, to be judged there.
//
// It makes a certain hit a rare one, and is no boundary: a program of the host that looks at a name in the same moment
// still sees it. It trusts nothing that an agent can write, also not its own folder, which is mounted inside.
package guard

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/identity"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/atwork"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/hostrun"
)

// Request is what a guard begins with.
type Request struct {
	Path    string   // the folder that the agent may change; canonical
	Held    string   // a folder of claudebox's own on the same file system; mounted read-write at [Inside] of Path
	Session string   // the name of the session, which no other one has
	Stops   string   // see [Stops]
	Lock    string   // a folder that no sandbox has: guards that share a folder of the user's take turns by its lock
	Copies  string   // one on the file system of Path, and that no sandbox has either; canonical
	Folders []string // the folders below Path to watch, "." among them
	Skipped []string // names of folders that are not watched
	Git     []string // the names called .git that were there before; links to what was held back do not count
	Bare    []string // folders that were repositories by what is in them, and that no agent can write to
	Users   []string // all repositories of that kind, which stay the user's wherever they are moved
	// Known reports whether another name below Path was there before. A link is not what was a folder.
	Known func(rel string, isLink bool) bool
	// Ask returns the names that git has in commits of the user's, and may bring at any time. It may take its time:
	// what is no repository waits for it. nil: there are none.
	Ask func() map[string]bool
	// Copy copies a thing, but for one name in it. nil: copies of a link lead to one thing, and nothing is renewed.
	Copy func(in *beneath.Folder, from string, to *beneath.Folder, name, but string) error
	// Told is called with each name that was held back, in the order of events. It must not wait.
	Told func(rel string)
	// Cover is called with each repository that a program of the user's makes: it hides that from the sandbox before it
	// returns. What it cannot hide, [Request.Lost] is called with.
	Cover func(rel string) error
	// IsAlone reports whether no other session has the folder.
	IsAlone func() bool
	// CoverCopy covers what the sandbox has by a name in an open folder of its own, by each of the mounts by which that
	// is open, for [Guard.Prepare].
	CoverCopy func(in []int, name string, isFolder bool) error
	// Template is the folder that the user's git begins new repositories with, in which no agent writes; empty: none.
	Template string
	// Sees reports whether an agent may have what the host has at a path, or make it there.
	Sees func(at string) bool
	// Unrenewed is called with a repository that a program of the user's has made, and that an agent which was faster
	// than its cover can write to until it is renewed, or the end.
	Unrenewed func(rel string, err error)
	// Renewed is called with the git folder of one that has new files: no agent can write there. nil: it is not called.
	Renewed func(rel string, id identity.ID)
	// PutAside is called with one in which hooks or its configuration, by which git would run something, got names that
	// end in [git.Aside]; names are those that they had.
	PutAside func(rel string, names []string)
	// HeldUsers is called with one that is held back, as git would run something in it.
	HeldUsers func(rel string)
	// Kept is called with one that got new files, and whose first ones were written to meanwhile; they lie at a path.
	Kept func(rel, at string)
	// Apart is called with each name that is on another file system, and stays.
	Apart func(rel string)
	// Lost is called when something cannot be held back any more. It may be called more than once.
	Lost func(error)
}

// Guard guards one folder. A nil Guard does nothing.
type Guard struct {
	Request
	root  *beneath.Folder
	held  *beneath.Folder   // Held
	turns *os.File          // Lock
	known map[string]bool   // the folders that it began with
	first map[string]uint64 // the inodes of the repositories that it began with, links not among them

	mu       sync.Mutex // around each look and the exchange after it
	early    []early    // names that are no repositories
	ended    bool
	count    int
	made     map[string]*made  // the session's own folders in Held, by the part of Path that they are for
	places   map[string]place  // where things are held back, by name
	users    map[uint64]users  // repositories that the user has made since, by inode
	doubts   map[uint64]int    // how often one was looked at that may be the user's, by inode
	theirs   map[string]bool   // folders that appeared while a program of the user's may have made a repository
	unmade   map[string]uint64 // inodes of those called .git that are no repositories yet, and are looked at again
	programs atwork.Programs   // of the user's
	wake     chan struct{}     // there are early ones
	done     chan struct{}     // closed by Close
	// copies are those that are being made.
	copies  sync.WaitGroup
	watch   *watch
	renewal *renewal // nil: repositories of the user's keep their files
	unready error    // why, if [Guard.Prepare] could not help it
}

// Open watches the folders from now on, and is called before the agent starts. Nothing is held back until
// [Guard.Serve], which then goes through all that has happened. The caller closes the guard.
func Open(r Request) (*Guard, error) {
	g := &Guard{
		Request: r, made: map[string]*made{}, places: map[string]place{}, known: map[string]bool{},
		first: map[string]uint64{}, doubts: map[uint64]int{}, users: map[uint64]users{},
		theirs: map[string]bool{}, unmade: map[string]uint64{},
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	for _, dir := range r.Folders {
		g.known[dir] = true
	}
	var err error
	if g.root, err = beneath.Open(r.Path); err != nil {
		return nil, err
	}
	for _, rel := range slices.Concat(r.Git, r.Bare) {
		if what, err := g.root.Look(rel); err == nil && !IsLink(r.Stops, g.root, rel) {
			g.first[rel] = what.Stamp.Ino
		}
	}
	if g.held, err = beneath.Open(r.Held); err != nil {
		g.root.Close()
		return nil, err
	}
	g.noteUsers()
	if g.turns, err = os.Open(r.Lock); err == nil {
		err = g.tryExchange()
	}
	if err == nil {
		g.watch, err = openWatch(g)
	}
	if err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// close closes the folders.
func (g *Guard) close() {
	for _, in := range g.made {
		in.Close()
	}
	g.turns.Close()
	g.held.Close()
	g.root.Close()
}

// These are the errors of a folder in which nothing can be held back.
var (
	ErrApart      = errors.New("it is on another file system than the folder for what is held back")
	ErrNoExchange = errors.New("its file system cannot exchange two names")
)

// Together reports whether two folders lie on one file system, so that names in them can be exchanged. If it fails to
// tell, they do not.
func Together(a, b string) bool {
	var of [2]unix.Statx_t
	for i, dir := range []string{a, b} {
		const want = unix.STATX_MNT_ID | unix.STATX_BASIC_STATS
		if unix.Statx(unix.AT_FDCWD, dir, unix.AT_SYMLINK_NOFOLLOW, want, &of[i]) != nil {
			return false
		}
	}
	return of[0].Mnt_id == of[1].Mnt_id && of[0].Dev_major == of[1].Dev_major && of[0].Dev_minor == of[1].Dev_minor
}

// tryExchange fails where nothing can be held back.
func (g *Guard) tryExchange() error {
	if !Together(g.held.Path(), g.root.Path()) {
		return ErrApart
	}
	in, err := g.madeFor(".")
	if err != nil {
		return err
	}
	for _, name := range []string{"a", "b"} {
		if err := in.Symlink(name, name); err != nil {
			return err
		}
	}
	err = unix.Renameat2(in.FD(), "a", in.FD(), "b", unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		err = ErrNoExchange
	}
	return errors.Join(err, in.Remove("a"), in.Remove("b"))
}

// Has reports whether what appears in a folder is held back.
func (g *Guard) Has(at string) bool {
	rel, below := pathname.Cut(at, g.Path)
	return below && slices.Contains(g.Folders, cmp.Or(rel, ".")) && Together(at, g.Path)
}

// Serve begins to hold back.
func (g *Guard) Serve() {
	if g == nil {
		return
	}
	g.mu.Lock()
	if in, err := g.madeFor("."); err == nil {
		in.makeStops(g.Stops)
	}
	g.mu.Unlock()
	g.watch.serve()
}

// Close ends the guard. Nothing may run inside any more. What is held back stays so until [BringOut]. It returns the
// repositories that the user has made meanwhile, relative to the folder.
func (g *Guard) Close() (users []string) {
	if g == nil {
		return nil
	}
	close(g.done)
	g.watch.close()
	g.mu.Lock()
	g.ended = true // before the copies are waited for: none begins any more
	g.mu.Unlock()
	g.copies.Wait()
	users = g.listUsers()
	if g.renewal != nil {
		g.renewal.close()
	}
	g.close()
	return users
}

// see looks at a name that appeared in a folder, and holds it back if tools obey it unasked.
func (g *Guard) see(dir, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return
	}
	rel := path.Join(dir, name)
	bare := signs[name] && g.isBare(dir)
	switch {
	case bare && (g.known[dir] || dir == "."):
		g.holdSign(dir, name)
		return
	case bare:
		rel = dir
	case !hostrun.Unasked(rel) && !g.leadsUnasked(rel):
		return
	}
	dir, name = path.Split(rel)
	dir = path.Clean(dir)
	_, _, ours := g.placeOf(dir, name)
	switch {
	case git.IsDotGit(name), ours: // which is only noted
		g.hold(dir, name)
	case bare && g.isUsers(rel): // a program that makes one may end soon
		g.hold(dir, name)
	default:
		g.early = append(g.early, early{rel, time.Now()})
		select {
		case g.wake <- struct{}{}:
		default:
		}
	}
}

// isFirst reports whether a repository is the one that the guard began with at a path. Another one in its place is new:
// the sandbox has nothing over it.
func (g *Guard) isFirst(rel string) bool {
	ino, was := g.first[rel]
	what, err := g.root.Look(rel)
	return was && err == nil && what.Stamp.Ino == ino
}

// leadsUnasked reports whether a link leads tools to what they obey unasked.
func (g *Guard) leadsUnasked(rel string) bool {
	if !hostrun.UnaskedLink(rel) {
		return false
	}
	what, err := g.root.Look(rel)
	return err == nil && what.Kind == beneath.Link
}

// holdSign holds back the name by which a folder that was there before has become a repository. The folder stays, as
// things of the user's are in it.
func (g *Guard) holdSign(dir, name string) {
	if g.isFirst(dir) || dir != "." && g.isUsers(dir) && g.leave(dir) {
		return
	}
	g.hold(dir, name)
}

// appeared notes a folder that was made: a small clone of the user's has ended before its repository is looked at.
func (g *Guard) appeared(dir string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.theirs, dir) // one of that name was there before
	if g.programs.MakeAt(g.root.Join(dir)) {
		g.theirs[dir] = true
	}
}

// early is a name that is no repository, and is not held back yet.
type early struct {
	rel string
	at  time.Time
}

// patience is for how long such a name stays as it is: `mkdir -p .idea/x` goes into no link. An editor waits longer
// before it reads what appears.
const patience = 20 * time.Millisecond

// again is after how long a name is looked at again that came while a git of the user's was at work.
const again = time.Second

// askAfter is how long a session lasts in which no name appears before git is asked for the user's names: it takes
// programs, for which a short session is not to wait.
const askAfter = 100 * time.Millisecond

// ask returns the names that git has in commits of the user's.
func (g *Guard) ask() map[string]bool {
	if g.Ask == nil {
		return nil
	}
	return g.Ask()
}

// follow holds back the names that are no repositories, when it knows which of them are git's.
func (g *Guard) follow() {
	users := sync.OnceValue(g.ask)
	for soon := time.After(askAfter); ; soon = nil {
		select {
		case <-g.done:
			return
		case <-g.wake:
		case <-soon:
		}
		known := users()
		for {
			g.mu.Lock()
			list := g.early
			g.early = nil
			g.mu.Unlock()
			if len(list) == 0 {
				break
			}
			for _, e := range list {
				select {
				case <-g.done:
					return
				case <-time.After(time.Until(e.at.Add(patience))):
				}
				g.mu.Lock()
				if dir, name := path.Dir(e.rel), path.Base(e.rel); !known[e.rel] && !g.inCheckout(dir) {
					g.hold(dir, name)
				}
				g.mu.Unlock()
			}
		}
	}
}

// inCheckout reports whether a folder belongs to a checkout that was made since the guard began. What git writes there
// is not held back, or git would show it as changed. The repository is.
func (g *Guard) inCheckout(dir string) bool {
	for ; dir != "." && !g.known[dir]; dir = path.Dir(dir) {
		if what, err := g.root.Look(dir + "/.git"); err == nil && what.Kind != beneath.Absent {
			return true
		}
	}
	return false
}

// signs are the names by which git takes a folder for a repository (setup.c, is_git_directory).
var signs = map[string]bool{"HEAD": true, "objects": true, "refs": true, "commondir": true}

// isBare reports whether git takes a folder for a repository by what is in it.
func (g *Guard) isBare(dir string) bool {
	has := func(sign string) bool {
		what, err := g.root.Look(path.Join(dir, sign))
		return err == nil && what.Kind != beneath.Absent
	}
	return has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

// moved looks at a name that was moved: a link of this guard's is found where it is.
func (g *Guard) moved(dir, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if id, deep, ours := g.placeOf(dir, name); ours {
		g.noteAt(id, deep, path.Join(dir, name))
	}
}

// tries is how often an exchange is tried while the agent puts something else in the link's place each time.
const tries = 1000

// hold exchanges a name with a link. It leaves what is the user's, and what is such a link already.
func (g *Guard) hold(dir, name string) {
	rel := path.Join(dir, name)
	for range tries {
		if id, deep, ours := g.placeOf(dir, name); ours {
			g.noteAt(id, deep, rel)
			return
		}
		text, there := g.at(dir, name)
		if !there || isLink(g.Stops, text) {
			return
		}
		if g.isFirst(rel) || g.Known(rel, text != "") {
			return
		}
		if g.isUsers(rel) {
			if !git.IsDotGit(name) && !g.isBare(rel) { // it is looked at again
				time.AfterFunc(again, func() { g.see(dir, name) })
				return
			}
			if g.leave(rel) {
				return
			}
		}
		what, err := g.root.Look(rel)
		if err == nil && what.Kind == beneath.Dir && git.IsDotGit(name) && !g.isBare(rel) {
			g.watch.queue(fresh{rel, true}) // it is none yet, or is being removed
			if ino := what.Stamp.Ino; g.unmade[rel] != ino {
				g.unmade[rel] = ino
				time.AfterFunc(again, func() { g.holdUnmade(dir, name, ino) })
			}
			return
		}
		if !g.exchanged(dir, name) {
			return
		}
	}
	g.Lost(fmt.Errorf("%s: it is replaced again and again", rel))
}

// exchanged exchanges a name with a link, and tells it. It reports whether the name is to be looked at again: the link
// is there, or something else may be. Else it cannot be held back, which is told.
func (g *Guard) exchanged(dir, name string) bool {
	rel := path.Join(dir, name)
	switch err := g.exchange(dir, name); {
	case errors.Is(err, errHeld), errors.Is(err, unix.ENOENT), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return true // it went, or the agent has removed the link before it was there
	case errors.Is(err, unix.EXDEV): // something is mounted there
		g.Apart(rel)
		return false
	case err != nil:
		g.Lost(fmt.Errorf("%s: %w", rel, err))
		return false
	}
	g.Told(rel)
	return true
}

// holdUnmade holds back a .git of the agent's that is no repository after a while: the user's own git would make one of
// it, with the agent's settings and hooks.
func (g *Guard) holdUnmade(dir, name string, ino uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	rel := path.Join(dir, name)
	if g.unmade[rel] != ino {
		return // another one is there, which has its own time
	}
	delete(g.unmade, rel)
	what, err := g.root.Look(rel)
	if g.ended || err != nil || what.Stamp.Ino != ino || what.Kind != beneath.Dir || g.isBare(rel) || g.isUsers(rel) {
		return
	}
	g.exchanged(dir, name)
}

// at returns the text of the link at a name, and whether something is there.
func (g *Guard) at(dir, name string) (text string, there bool) {
	parent, err := g.root.Sub(dir)
	if err != nil {
		return "", false
	}
	defer parent.Close()
	what, err := parent.Look(name)
	if err != nil || what.Kind == beneath.Absent {
		return "", false
	}
	text, _ = parent.Readlink(name) // or it is none
	return text, true
}

// placeOf returns where in this guard's own folders the link at a name leads, if it is one of this guard's: the name of
// a place, and the way on from there.
func (g *Guard) placeOf(dir, name string) (id, deep string, ours bool) {
	text, _ := g.at(dir, name)
	id, deep, ours = placeOf(g.Session, text)
	return id, deep, ours && isLink(g.Stops, text)
}

// noteAt notes that the link to a place is at rel now.
func (g *Guard) noteAt(id, deep, rel string) {
	old, known := g.places[id]
	if !known || old.rel == rel {
		return
	}
	if there, _, ours := g.placeOf(path.Dir(old.rel), path.Base(old.rel)); !ours || there != id {
		g.places[id] = place{old.made, rel}
		_ = g.note(id) // then it is found where it was, or not
	} else if g.Copy != nil {
		g.copies.Go(func() { _ = g.copyTo(id, deep, rel) }) // else both links lead to one place
	}
}

// copyTo gives a copy of a link, as `cp -r` makes, a copy of what the link leads to.
func (g *Guard) copyTo(id, deep, rel string) error {
	g.mu.Lock()
	in := g.places[id].Folder
	fresh, at, err := g.newPlace(rel, "link")
	g.mu.Unlock()
	if err != nil {
		return err
	}
	defer at.Close()
	if err := g.Copy(in, path.Join(id, deep), at, thing, ""); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if there, _, ours := g.placeOf(path.Dir(rel), path.Base(rel)); !ours || there != id { // it is another one by now
		of := g.places[fresh]
		delete(g.places, fresh)
		return of.RemoveAll(fresh)
	}
	parent, err := g.root.Sub(path.Dir(rel))
	if err != nil {
		return err
	}
	defer parent.Close()
	return unix.Renameat(at.FD(), "link", parent.FD(), path.Base(rel))
}

// errHeld is returned for what another guard holds back, and tells.
var errHeld = errors.New("another session holds it back")

// exchange puts a link in the place of a name, and what is there into a place of its own. A link of another guard's it
// leaves: of links that lead to each other, the session that ends first would take one away.
func (g *Guard) exchange(dir, name string) error {
	parent, err := g.root.Sub(dir)
	if err != nil {
		return errors.Unwrap(err)
	}
	defer parent.Close()
	id, at, err := g.newPlace(path.Join(dir, name), thing)
	if err != nil {
		return err
	}
	defer at.Close()
	return g.inTurn(func() error {
		if IsLink(g.Stops, parent, name) {
			of := g.places[id]
			delete(g.places, id)
			return cmp.Or(of.RemoveAll(id), errHeld)
		}
		return unix.Renameat2(at.FD(), thing, parent.FD(), name, unix.RENAME_EXCHANGE)
	})
}

// inTurn does something while no other guard of the user's does.
func (g *Guard) inTurn(do func() error) error {
	if err := unix.Flock(int(g.turns.Fd()), unix.LOCK_EX); err != nil {
		return os.NewSyscallError("flock", err)
	}
	defer unix.Flock(int(g.turns.Fd()), unix.LOCK_UN)
	return do()
}

// newPlace makes a place for what is at rel. In the place's innermost folder, which the caller closes, it makes the
// link to the thing, by a name.
func (g *Guard) newPlace(rel, name string) (id string, at *beneath.Folder, err error) {
	in, err := g.madeFor(path.Dir(rel))
	if err != nil {
		return "", nil, err
	}
	g.count++
	id = fmt.Sprint(g.count)
	way, at, err := makePlace(in.Folder, id, g.root.Join(rel), g.Path)
	if err != nil {
		return "", nil, err
	}
	g.places[id] = place{in, rel}
	text := path.Join(in.inside, way, thing)
	if to := linkTo(g.Stops, rel, text); to != text {
		text = to
		in.stopAt(g.Stops, id)
	}
	if err = errors.Join(at.Symlink(text, name), g.note(id)); err != nil {
		at.Close()
		return "", nil, err
	}
	return id, at, nil
}

// note writes down where the link to a place is, for [BringOut].
func (g *Guard) note(id string) error {
	of := g.places[id]
	return writeWhere(of.Folder, id, g.root.Join(of.rel))
}
