package guard

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/flock"
	"claudebox/internal/linux/identity"
	"claudebox/internal/linux/mountinfo"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/workspace/atwork"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/survey"
)

// An agent may open a repository that the user makes before that is covered, and so could write there by what it has
// open, for as long as it runs. So when the program that made it has ended, the repository gets new files: a copy,
// which is covered in the sandbox while it is still where no agent comes to, and is then exchanged with the first one.
// A mount lies on a folder, and not on its name: it comes along.
//
// What is outside of the sandbox's mounts of the user's folder cannot be covered in them. So the folder for copies is
// made in the user's, opened by each such mount, and moved away, before the agent runs. For a mount of a part alone it
// is moved into that part first.

// renewal renews repositories of the user's.
type renewal struct {
	*beneath.Folder                 // the folder for copies
	guard           *Guard          // of the folder that the repositories are in
	top             *beneath.Folder // where the one for copies lies, by the session's name
	lock            *os.File        // of that, while the session lives
	inside          []int           // it, by each mount of the sandbox
	closed          []string        // parts with a mount to where it could not be moved
	count           atomic.Int64    // of copies
	busy            atwork.Programs // programs that change repositories; guard.mu is held around it
}

const (
	renewals = "claudebox-renewed" // the folder in [Request.Copies] with the folders for copies
	// newCopies is how the name of the one for copies begins while it is in the user's.
	newCopies = ".claudebox-"
	kept      = "kept-" // how the names begin of what is kept there
	// keptThing is the name there of what was a repository. It is none that git looks for, and nobody comes in before
	// the session ends: the agent, which may have it open, could have the user's git obey it.
	keptThing = "first"
	// objects is what is moved of a repository of which a copy takes too long, or too much: git runs nothing by it.
	objects = "objects"
	hooks   = "hooks"
)

var (
	errShared = errors.New("another session has the folder, too")
	errNotIts = errors.New("the sandbox has another folder there")
	errGone   = errors.New("it is gone, or not the user's any more")
	// What keeps a repository from new files.
	errMoved   = errors.New("it is moved, so it gets no new files: use no git there before the session has ended")
	errWritten = errors.New("it is written to all the time, so it gets no new files yet")
	errNoMove  = errors.New("you could not write in a folder above it when the session began, so it gets no new files")
)

// Prepare makes the folder for copies, before [Guard.Serve], in a sandbox that waits at its gate, by its process 1.
// Where another session has the guarded folder, its agent could open the one for copies, and there is none.
func (g *Guard) Prepare(process int) error {
	if !g.IsAlone() {
		g.unready = errShared
		return nil
	}
	r, name := &renewal{guard: g}, newCopies+g.Session
	err := g.inTurn(func() error {
		g.removeLeft(".")
		if g.unready = mkdir(g.root, name); g.unready != nil {
			return nil // in most such folders the user cannot make a repository either
		}
		return r.open(name, process)
	})
	if err == nil && g.unready == nil {
		g.renewal = r
		return nil
	}
	r.close()
	if errors.Is(err, errNotIts) {
		g.unready, err = err, nil
	}
	return err
}

// removeLeft removes such folders of sessions that were killed amid that. [Guard.inTurn] is held around it: no other
// guard is amid that.
func (g *Guard) removeLeft(part string) {
	in, err := g.root.Sub(part)
	if err != nil {
		return
	}
	defer in.Close()
	names, _ := in.Names(".", mostNames)
	own := newCopies + g.Session
	for _, name := range names {
		if strings.HasPrefix(name, newCopies) && len(name) == len(own) && name != own {
			_ = unix.Unlinkat(in.FD(), name, unix.AT_REMOVEDIR) // what is in use is not empty
		}
	}
}

// open opens the folder for copies, and takes it away from where it was made.
func (r *renewal) open(name string, process int) (err error) {
	g := r.guard
	at := name
	defer func() {
		if err != nil {
			_ = g.root.Remove(at) // or it was moved away already
		}
	}()
	if r.Folder, err = g.root.Sub(name); err != nil {
		return err
	}
	if r.lock, err = lock(r.Folder); err != nil {
		return err
	}
	if at, err = r.openInside(name, process); err != nil {
		return err
	}
	top := path.Join(g.Copies, renewals)
	if err := Make(g.Copies, top); err != nil {
		return err
	}
	if r.top, err = beneath.Open(top); err != nil {
		return err
	}
	removeOld(r.top)
	r.As(r.top.Join(g.Session))
	parent, err := g.root.Sub(path.Dir(at))
	if err != nil {
		return err
	}
	defer parent.Close()
	return unix.Renameat(parent.FD(), name, r.top.FD(), g.Session)
}

// openInside opens the folder for copies by each mount by which the sandbox could write there, and returns where it is.
func (r *renewal) openInside(name string, process int) (at string, err error) {
	g, at := r.guard, name
	var made unix.Stat_t
	if err := unix.Fstat(r.FD(), &made); err != nil {
		return at, err
	}
	views, err := mountinfo.Views(process, g.Path)
	if err != nil {
		return at, err
	}
	for _, v := range views {
		if v.ReadOnly {
			continue
		}
		if v.Part != "." {
			g.removeLeft(v.Part)
		}
		to := path.Join(v.Part, name)
		if err := g.root.Rename(at, to); err != nil { // it may be a file
			r.closed = append(r.closed, v.Part)
			continue
		}
		at = to
		if fd := v.Open(process, name, made); fd >= 0 { // else another mount lies over it
			r.inside = append(r.inside, fd)
		}
	}
	if len(r.inside) == 0 { // as where a bare repository is given, of which the agent has its own
		return at, errNotIts
	}
	return at, nil
}

// close removes the folder for copies, if nothing is kept in it.
func (r *renewal) close() {
	if r.Folder != nil {
		r.openKept()
		r.Close()
	}
	if r.lock != nil {
		r.lock.Close()
	}
	if r.top != nil {
		_ = r.guard.inTurn(r.remove) // or another session has it still
		r.top.Close()
	}
	for _, fd := range r.inside {
		unix.Close(fd)
	}
}

// openKept opens what is kept for the user, and has git take it for no repository.
func (r *renewal) openKept() {
	names, _ := r.Names(".", mostNames)
	for _, name := range names {
		if strings.HasPrefix(name, kept) {
			head := path.Join(name, keptThing, "HEAD")
			_ = errors.Join(r.Chmod(name, owners), r.Rename(head, head+"."+git.Aside))
		}
	}
}

// remove removes the folder for copies, and what it lies in, if they are empty.
func (r *renewal) remove() error {
	in, err := beneath.Open(r.guard.Copies)
	if err != nil {
		return err
	}
	defer in.Close()
	return cmp.Or(r.top.Remove(r.guard.Session), in.Remove(renewals))
}

// lock locks a folder for copies, and fails if another session has it.
func lock(folder *beneath.Folder) (*os.File, error) {
	return flock.Folder(fmt.Sprintf("/proc/self/fd/%d", folder.FD()), errShared)
}

// removeOld removes the folders for copies of sessions that were killed, but for what is kept there.
func removeOld(top *beneath.Folder) {
	sessions, _ := top.Names(".", mostNames)
	for _, session := range sessions {
		in, err := top.Sub(session)
		if err != nil {
			continue
		}
		if held, err := lock(in); err == nil {
			copies, _ := in.Names(".", mostNames)
			for _, name := range copies {
				if !strings.HasPrefix(name, kept) {
					_ = in.RemoveAll(name)
				}
			}
			_ = top.Remove(session)
			held.Close()
		}
		in.Close()
	}
}

const (
	// quiet is how often in a row no program of the user's is found at work before a repository is renewed, every
	// [renewAfter].
	quiet      = 3
	renewAfter = 20 * time.Millisecond
	// mostRenewals is how often a repository is copied that is written to meanwhile. The last time what it was is kept.
	mostRenewals = 5
	// mostMoves is how often a repository may come and go before it is held back: an agent that moves the folder above
	// keeps it from new files.
	mostMoves = 10
	// tellAfter is for how long a repository may wait for new files untold, as while a git of the user's works there.
	tellAfter = 10 * time.Second
)

// renew gives a repository that the user has made new files, when nothing of the user's is at work there any more. It
// goes on wherever the repository is moved. What keeps it from that is told after a while.
func (r *renewal) renew(ino uint64) {
	g, begun, told, last := r.guard, time.Now(), false, ""
	for calm, tries, moves := 0, 0, 0; ; calm++ {
		select {
		case <-g.done:
			return
		case <-time.After(renewAfter):
		}
		rel, at, err := r.look(ino)
		if errors.Is(err, errGone) {
			return
		}
		if at != last {
			calm, last, moves = 0, at, moves+1
		}
		if err != nil {
			calm = 0
		}
		if !told && (err != nil || tries > 0) && time.Since(begun) > tellAfter {
			told = true
			g.Unrenewed(rel, cmp.Or(err, errWritten))
		}
		if moves > mostMoves {
			r.holdUsers(ino)
			return
		}
		if calm < quiet {
			continue
		}
		if !g.IsAlone() {
			g.Unrenewed(rel, errShared)
			return
		}
		tries++
		again, err := r.tryRenew(rel, ino, tries >= mostRenewals)
		if err != nil {
			g.Unrenewed(rel, err)
		}
		if !again || err != nil {
			return
		}
		calm = 0
	}
}

// look returns where a repository that the user has made was seen, and where it is; empty: elsewhere. err says what
// keeps it from new files; [errGone]: it needs none.
func (r *renewal) look(ino uint64) (rel, at string, err error) {
	g := r.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	of, is := g.users[ino]
	switch {
	case g.ended || !is || of.refused || isRemoved(of.fd):
		return of.rel, "", errGone
	case !r.isThere(of.rel, ino):
		return of.rel, "", errMoved
	case slices.ContainsFunc(r.closed, func(part string) bool { return pathname.Below(of.rel, part) }):
		return of.rel, "", errNoMove
	}
	if pid := r.atWork(of.rel); pid != "" {
		const why = "it gets new files once process %s of yours ends: close the editor that it waits for, or end it"
		err = fmt.Errorf(why, pid)
	}
	return of.rel, of.rel, err
}

func isRemoved(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Nlink == 0
}

// atWork is [atwork.Programs.WriterIn] of a repository. guard.mu is held.
func (r *renewal) atWork(rel string) (pid string) {
	if git.IsDotGit(path.Base(rel)) {
		rel = path.Dir(rel)
	}
	return r.busy.WriterIn(r.guard.root.Join(rel))
}

// isThere reports whether a repository that the user has made is at a path. guard.mu is held.
func (r *renewal) isThere(rel string, ino uint64) bool {
	g := r.guard
	what, err := g.root.Look(rel)
	return !g.ended && err == nil && what.Stamp.Ino == ino && g.users[ino].rel == rel
}

// tryRenew makes the copy, and exchanges it. again says that the repository was written to meanwhile, and nothing was
// changed. The last time it is exchanged all the same.
func (r *renewal) tryRenew(rel string, ino uint64, last bool) (again bool, err error) {
	g := r.guard
	place := fmt.Sprint(r.count.Add(1))
	if err := mkdir(r.Folder, place); err != nil {
		return false, err
	}
	in, err := r.Sub(place)
	if err != nil {
		return false, err
	}
	defer in.Close()
	again, old, err := r.renewIn(in, rel, ino, last)
	if old {
		keep := kept + place
		err := errors.Join(
			in.Rename(path.Base(rel), keptThing), r.Rename(place, keep), r.Chmod(keep, 0),
		)
		if err != nil {
			return false, err
		}
		g.Kept(rel, r.Join(keep))
		return false, nil
	}
	return again, errors.Join(err, r.RemoveAll(place))
}

// renewIn is [renewal.tryRenew] in a folder for this copy, which has it by its own name: what it is depends on that.
// old says that what it was is there, and was written to.
func (r *renewal) renewIn(in *beneath.Folder, rel string, ino uint64, last bool) (again, old bool, err error) {
	g := r.guard
	name, before, moved := path.Base(rel), contentOf(g.root, rel), ""
	if before.fills(in) {
		moved = objects
	}
	err = g.Copy(g.root, rel, in, name, moved)
	if errors.Is(err, context.DeadlineExceeded) && moved == "" {
		moved = objects
		err = cmp.Or(in.RemoveAll(name), g.Copy(g.root, rel, in, name, moved))
	}
	if err != nil { // files went meanwhile, or the agent has closed some
		if last {
			r.holdUsers(ino)
		}
		return !last, false, nil
	}
	what, err := in.Look(name)
	isFolder := what.Kind == beneath.Dir
	switch {
	case err != nil:
		return false, false, err
	case !last && !before.equals(contentOf(g.root, rel), moved):
		return true, false, nil
	}
	taken, isUsers := r.makeUsers(in, name, rel, isFolder)
	if !isUsers {
		r.holdUsers(ino)
		return false, false, nil
	}
	if err := g.CoverCopy(r.inside, path.Join(path.Base(in.Path()), name), isFolder); err != nil {
		return false, false, err
	}
	id := identity.At(in.FD(), name)
	if again, err = r.putCopy(in, rel, ino, moved); again || err != nil {
		return again, false, err
	}
	if isFolder && g.Renewed != nil {
		g.Renewed(rel, id)
	}
	if len(taken) > 0 {
		g.PutAside(rel, taken)
	}
	return false, !before.equals(contentOf(in, name), moved), nil
}

// makeUsers puts aside in a copy what git would run something by, and returns the names of that. It reports whether the
// copy can be the user's.
func (r *renewal) makeUsers(in *beneath.Folder, name, rel string, isFolder bool) (taken []string, is bool) {
	g := r.guard
	if !isFolder {
		return nil, g.leadsOut(in, name, g.root.Join(rel))
	}
	taken, err := git.MakePlain(in, name, g.asUsers())
	if err != nil || !git.IsPlain(in, name, g.asUsers()) {
		return nil, false
	}
	for _, at := range taken {
		err = cmp.Or(err, in.Rename(at, path.Join(name, at+"."+git.Aside)))
	}
	return taken, err == nil
}

// asUsers is what is known of a repository that the user makes.
func (g *Guard) asUsers() git.Users {
	return git.Users{Sees: g.sees, IsHook: func(in *beneath.Folder, hook string) bool {
		const limit = 1 << 20
		made, err := in.Read(hook, limit)
		own, fault := smallfile.Read(path.Join(g.Template, hooks, path.Base(hook)), limit)
		return g.Template != "" && err == nil && fault == nil && bytes.Equal(made, own)
	}}
}

// leadsOut reports whether a file that is to be called .git at a path leads git where no agent writes, and to what says
// that it is this one's.
func (g *Guard) leadsOut(in *beneath.Folder, file, at string) bool {
	to := leadsTo(in, file, at)
	if to == "" || g.sees(to) || !slices.Contains([]string{at, path.Dir(at)}, git.LedBy(to)) {
		return false
	}
	below, inside := pathname.Cut(to, g.Path)
	what, err := g.root.Look(below)
	return !inside || err == nil && what.Kind != beneath.Link
}

// leadsTo returns where a file that is to be called .git at a path leads; empty: nowhere, as of what is no file.
func leadsTo(in *beneath.Folder, file, at string) string {
	const limit = 1 << 20
	text, _ := in.Read(file, limit)
	return git.LeadsTo(at, string(text))
}

// holdUsers holds back a repository that passed for the user's: git would run something in it by now, or an agent keeps
// it from new files.
func (r *renewal) holdUsers(ino uint64) {
	g := r.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	of, is := g.users[ino]
	if g.ended || !is {
		return
	}
	of.refused = true
	g.users[ino] = of
	dir, name := path.Split(of.rel)
	dir = path.Clean(dir)
	if r.isThere(of.rel, ino) {
		g.exchanged(dir, name)
	}
	if _, _, ours := g.placeOf(dir, name); ours {
		g.HeldUsers(of.rel)
	} else if !isRemoved(of.fd) {
		g.Unrenewed(of.rel, errMoved)
	}
}

// putCopy exchanges a repository with its copy. What is to be moved is not in that, and comes from the repository.
func (r *renewal) putCopy(in *beneath.Folder, rel string, ino uint64, moved string) (again bool, err error) {
	g := r.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	r.busy = atwork.Programs{} // what was no git before does not count
	if r.atWork(rel) != "" || !r.isThere(rel, ino) || !g.IsAlone() {
		return true, nil
	}
	parent, err := g.root.Sub(path.Dir(rel))
	if err != nil {
		return false, err
	}
	defer parent.Close()
	name := path.Base(rel)
	what, err := in.Look(name)
	if err != nil {
		return false, err
	}
	fd, err := in.OpenFD(name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return false, err
	}
	exchange := func() error { return unix.Renameat2(in.FD(), name, parent.FD(), name, unix.RENAME_EXCHANGE) }
	err = exchange()
	if was, fault := in.Look(name); err == nil && (fault != nil || was.Stamp.Ino != ino) {
		again, err = true, exchange() // the agent had moved another one to there
	}
	if !again && err == nil && moved != "" {
		if err = moveTo(parent, name, in, name, moved); err != nil {
			err = errors.Join(err, exchange())
		}
	}
	if again || err != nil {
		unix.Close(fd)
		return again, err
	}
	g.forgetUsers(ino)
	g.users[what.Stamp.Ino] = users{rel: rel, fd: fd, renewed: true}
	g.cover(rel, what.Stamp.Ino) // where the agent can read it
	return false, nil
}

// moveTo moves a name to a folder below one, from one below another.
func moveTo(to *beneath.Folder, toRel string, from *beneath.Folder, fromRel, name string) error {
	there, err := to.Sub(toRel)
	if err != nil {
		return err
	}
	defer there.Close()
	here, err := from.Sub(fromRel)
	if err != nil {
		return err
	}
	defer here.Close()
	return unix.Renameat2(here.FD(), name, there.FD(), name, unix.RENAME_NOREPLACE)
}

// content is what is compared of a repository: the text of a file, or what lies in a folder.
type content struct {
	text  string
	files []survey.File
	size  int64 // of the files together, in bytes
}

// fills reports whether a copy in a folder would take more than half of what is free there.
func (c content) fills(in *beneath.Folder) bool {
	var there unix.Statfs_t
	return unix.Fstatfs(in.FD(), &there) == nil && uint64(c.size) > there.Bavail*uint64(there.Bsize)/2
}

// equals reports whether two contents are the same, but for what lies in a folder that is moved.
func (c content) equals(o content, moved string) bool {
	files := func(of content) []survey.File {
		return slices.DeleteFunc(slices.Clone(of.files), func(f survey.File) bool {
			return moved != "" && pathname.Below(f.Rel, moved)
		})
	}
	return c.text == o.text && slices.Equal(files(c), files(o))
}

func contentOf(in *beneath.Folder, rel string) (c content) {
	folder, err := in.Sub(rel)
	if err != nil {
		const limit = 1 << 20
		text, _ := in.Read(rel, limit)
		return content{text: string(text)}
	}
	defer folder.Close()
	c.files = survey.Walk(folder, survey.Question{Wanted: survey.Everything, Limit: mostNames}, nil).Files
	for i, f := range c.files {
		c.size += f.Stamp.Size
		if f.Names > 1 { // `git clone` links objects, which other clones change by that
			c.files[i] = survey.File{Rel: f.Rel, Kind: f.Kind}
		}
	}
	return c
}
