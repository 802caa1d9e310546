package guard

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/git"
)

const (
	inside   = "/run/claudebox/held/" // where what is held back lies inside
	stops    = "held-back"            // the folder of [Stops]
	sessions = ".held"                // the folder with those of sessions
	thing    = "g"                    // what is held back, in its place: no name that git or another tool looks for
	// whereFile is the file in a place with the path of the link to it.
	whereFile = "at"
)

// Held returns the folder for what is held back of a folder of the user's: below claudebox's home, at the path that the
// user's folder has on the host. Two sessions, one in a folder and one in a folder above it, so find the same thing at
// the same path, and each finds only things of its own folder.
func Held(home, folder string) string {
	return path.Join(beneath.LeadsOrClean(home), "held") + mirrored(folder)
}

// Inside is where the sandbox has what is held back of a folder of the user's.
func Inside(folder string) string { return path.Clean(inside) + mirrored(folder) }

// Stops is where the links to repositories lead. Inside it is a link to where they lie. Outside there are files at
// which git stops: where a link leads nowhere, it goes on to the repository above, and commits there.
func Stops(home string) string { return path.Join(beneath.LeadsOrClean(home), stops) }

// stop is what git prints at such a file. Only root can make something at its path.
const stop = "gitdir: /claudebox holds this .git back: `claudebox git` says more. If you have made it: rm .git, and " +
	"make it again\n"

// linkTo is the text of a link at a path to what lies at one inside. stops is empty where git need not stop.
func linkTo(stops, rel, at string) string {
	if name := path.Base(rel); stops == "" || !git.IsDotGit(name) && name != linkAside {
		return at
	}
	return path.Join(stops, strings.TrimPrefix(at, path.Clean(inside)))
}

// closed is the mode of folders in [Stops]: through a link that leads to where nothing is, `git init` makes a repository.
const closed = 0o500

// makeStops makes the folder in [Stops] for a session's own one, with the one file that all links lead to: each name on
// the way there is a link to the folder itself. Where it cannot, or the way has more than 40 links, git goes on to the
// repository above.
func (m *made) makeStops(stops string) {
	if stops == "" {
		return
	}
	home, at := path.Dir(stops), linkTo(stops, ".git", m.inside)
	if Make(home, at) != nil {
		return
	}
	if in, err := beneath.Open(at); err == nil {
		const perm = 0o400
		_ = errors.Join(in.Create(thing, []byte(stop), perm), in.Symlink(".", "x")) // or they are there
		in.Close()
	}
	root, err := beneath.Open(home)
	if err != nil {
		return
	}
	defer root.Close()
	for rel, _ := pathname.Cut(at, home); rel != "."; rel = path.Dir(rel) {
		_ = root.Chmod(rel, closed)
	}
}

// stopAt has git stop at the link to a place that is about to be made.
func (m *made) stopAt(stops, id string) {
	at := linkTo(stops, ".git", m.inside)
	in, err := beneath.Open(at)
	if err != nil {
		m.makeStops(stops)
		in, err = beneath.Open(at)
	}
	if err == nil {
		_ = errors.Join(in.Chmod(".", owners), in.Symlink(".", id), in.Chmod(".", closed))
		in.Close()
	}
}

// RemoveStops removes those files of sessions that hold nothing back of a folder any more. held is its one like [Held].
func RemoveStops(stops, folder, held string) {
	root, err := beneath.Open(stops)
	if err != nil {
		return // there are none
	}
	defer root.Close()
	top := stops + mirrored(folder)
	for _, at := range Sessions(top) {
		if _, err := os.Lstat(held + strings.TrimPrefix(at, top)); errors.Is(err, fs.ErrNotExist) {
			rel, _ := pathname.Cut(at, stops)
			for remove := root.RemoveAll; rel != "."; remove = root.Remove {
				up := path.Dir(rel)
				if cmp.Or(root.Chmod(up, owners), remove(rel)) != nil { // others have it
					_ = root.Chmod(up, closed)
					break
				}
				rel = up
			}
		}
	}
}

// InsideOf is where a link to what is held back leads inside.
func InsideOf(text string) string {
	if _, rest, is := strings.Cut(text, "/"+stops+"/"); is {
		return inside + rest
	}
	return text
}

// SessionsIn is the folder in one like [Held] with those of sessions.
func SessionsIn(held string) string { return path.Join(held, sessions) }

// InSession is the folder for what one session holds back, in one like [Held].
func InSession(held, session string) string { return path.Join(SessionsIn(held), session) }

// HeldOf is the folder like [Held] of one like that of [InSession].
func HeldOf(session string) string { return path.Dir(path.Dir(session)) }

// Shares reports whether two sessions, one of whose folders lies in the other's or is it, have what each of them holds
// back there. a and b are their folders like that of [InSession]; empty: it holds nothing back.
func Shares(a, b string) bool {
	in, of := HeldOf(a), HeldOf(b)
	alike := a == InSession(in, path.Base(a)) && b == InSession(of, path.Base(b))
	return a == "" || b == "" || alike && pathname.Overlap(in, of)
}

// FolderBefore is the folder of an instance that held what is held back, before there was [Held].
const FolderBefore = "held"

// mirrored is a path in which no name is that of [sessions].
func mirrored(at string) string {
	names := strings.Split(at, "/")
	for i, name := range names {
		if strings.HasPrefix(name, ".") && strings.TrimLeft(name, ".") == sessions[1:] {
			names[i] = "." + name
		}
	}
	return strings.Join(names, "/")
}

// Make makes a folder like [Held] below an own one, which is there and whose path is canonical. No link is followed on
// the way: the agent of a session in a folder above may write there.
func Make(own, held string) error {
	root, err := beneath.Open(own)
	if err != nil {
		return err
	}
	defer root.Close()
	rel, _ := pathname.Cut(held, own)
	if root.Chmod(rel, owners) == nil { // as most are
		if made, err := root.Sub(rel); err == nil {
			made.Close()
			return nil
		}
	}
	at := ""
	for name := range strings.SplitSeq(rel, "/") {
		at = path.Join(at, name)
		if err := ensure(root, at); err != nil {
			return err
		}
	}
	return nil
}

// ensure makes a folder, or opens it for its owner if it is there. What an agent has put in its place is removed.
func ensure(in *beneath.Folder, rel string) error {
	err := mkdir(in, rel)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if what, err := in.Look(rel); err != nil || what.Kind == beneath.Dir {
		return cmp.Or(err, in.Chmod(rel, owners))
	}
	return cmp.Or(in.Remove(rel), mkdir(in, rel))
}

// owners is the mode of what only its owner may come to.
const owners = 0o700

// mkdir makes a folder for its owner, whatever the umask of the caller is.
func mkdir(in *beneath.Folder, rel string) error {
	if err := in.Mkdir(rel, owners); err != nil {
		return err
	}
	return in.Chmod(rel, owners)
}

// made is a session's own folder for what is held back of one folder of the user's.
type made struct {
	*beneath.Folder
	inside string // where it is inside
}

// openMade makes a session's own folder at a path below the folder for what is held back of at; or opens it.
func openMade(held *beneath.Folder, rel, at, session string) (*made, error) {
	for _, name := range []string{sessions, path.Join(sessions, session)} {
		if err := ensure(held, path.Join(rel, name)); err != nil {
			return nil, err
		}
	}
	folder, err := held.Sub(path.Join(rel, sessions, session))
	return &made{folder, InSession(Inside(at), session)}, err
}

// madeFor returns the session's own folder for what lies in a folder below Path. It is the one for the innermost folder
// that a session was given: each that lives there has it.
func (g *Guard) madeFor(dir string) (*made, error) {
	at := "."
	for name := range strings.SplitSeq(dir, "/") {
		next := path.Join(at, name)
		if what, err := g.held.Look(mirrored(next)); err != nil || what.Kind != beneath.Dir || name == "." {
			break
		}
		at = next
	}
	if g.made[at] == nil {
		fresh, err := openMade(g.held, mirrored(at), path.Join(g.Path, at), g.Session)
		if err != nil {
			return nil, err
		}
		g.made[at] = fresh
	}
	return g.made[at], nil
}

// place is where one thing is held back. Its name is one in made.
type place struct {
	*made
	rel string // where the link to it is
}

// makePlace makes the place of one thing, whose path is at. It opens the folder for it, and returns the way there. That
// is as long as the path of the thing's folder on the host, and on it are links to what a relative path in a .git file
// may lead to from there: to what is held back, to the git folder of the project, and to those in it. git follows the
// link to the thing before it reads such a path.
func makePlace(in *beneath.Folder, id, at, project string) (way string, made *beneath.Folder, err error) {
	way, host := id, "/"
	if err := mkdir(in, way); err != nil {
		return "", nil, err
	}
	for name := range strings.SplitSeq(strings.Trim(path.Dir(at), "/"), "/") {
		if rest, leads := pathname.Cut(path.Clean(inside), host); leads {
			next, _, _ := strings.Cut(rest, "/")
			err = in.Symlink(path.Join(host, next), path.Join(way, next))
		} else if pathname.Below(host, project) {
			err = in.Symlink(host+"/.git", way+"/.git")
		}
		way, host = way+"/x", path.Join(host, name)
		if err = cmp.Or(err, mkdir(in, way)); err != nil {
			return "", nil, err
		}
	}
	made, err = in.Sub(way)
	return way, made, err
}

// writeWhere notes the path of the link to a place.
func writeWhere(in *beneath.Folder, id, at string) error {
	const perm = 0o600
	name := path.Join(id, whereFile)
	if err := in.Rewrite(name, []byte(at), perm); err != nil {
		return err
	}
	return in.Chmod(name, perm)
}

// errElsewhere is the error for what is not held back of a folder, but of another one.
var errElsewhere = errors.New("it is another folder's")

// readWhere returns where below root the link to a place is to be.
func readWhere(root, in *beneath.Folder, id string) (rel string, err error) {
	const limit = 1 << 20
	where, err := in.Read(path.Join(id, whereFile), limit)
	if err != nil {
		return "", errNothing // it was being made, or the agent made it
	}
	at := string(where)
	if !path.IsAbs(at) { // as it was written before
		return at, nil
	}
	rel, below := pathname.Cut(at, root.Path())
	if !below {
		return "", errElsewhere
	}
	return rel, nil
}

// placeOf returns the place that a link leads to, and the rest of the way there, if that is one of a session's.
func placeOf(session, text string) (id, deep string, is bool) {
	rest, is := strings.CutPrefix(InsideOf(text), inside)
	_, rest, in := strings.Cut(rest, "/"+session+"/")
	id, deep, further := strings.Cut(rest, "/")
	return id, deep, is && in && further
}

// Thing returns what is held back at a path inside, by a name that it keeps when a session in a folder below has it
// elsewhere, and the rest of the way. Empty: nothing can be held back there.
func Thing(at string) string {
	rest, is := strings.CutPrefix(at, inside)
	_, name, in := strings.Cut("/"+rest, "/"+sessions+"/")
	if !is || !in {
		return ""
	}
	return name
}

// ThingOf is [Thing] for where a file leads that is called .git at a path; empty: it is none, or leads elsewhere.
func ThingOf(in *beneath.Folder, file, at string) string {
	const limit = 1 << 20
	text, err := in.Read(file, limit)
	if err != nil {
		return ""
	}
	return Thing(git.LeadsTo(at, string(text)))
}

// IsLink reports whether a name is a link to what some guard holds back, which leads to nothing of an agent's outside.
// stops is that of [Stops].
func IsLink(stops string, root *beneath.Folder, rel string) bool {
	text, err := root.Readlink(rel)
	return err == nil && isLink(stops, text)
}

// isLink is [IsLink] by the text of a link.
func isLink(stops, text string) bool {
	return path.Clean(text) == text && // else it may lead back from there
		(strings.HasPrefix(text, inside) || stops != "" && strings.HasPrefix(text, stops+"/"))
}

// seemsLink is [IsLink], also of a link that some other claudebox, or an agent, has made.
func seemsLink(root *beneath.Folder, rel string) bool {
	text, err := root.Readlink(rel)
	return err == nil && strings.HasPrefix(InsideOf(text), inside)
}

// Kept is the name of the folder among those of sessions with what no link led to.
const Kept = "kept"

// mostParts is how many folders below one are looked at for what is held back of them.
const mostParts = 10_000

// Sessions lists the folders like that of [InSession] for a folder of the user's and those below it. What no link led
// to is not among them.
func Sessions(held string) (list []string) {
	for parts := []string{held}; len(parts) > 0 && len(parts) < mostParts; parts = parts[1:] {
		entries, _ := os.ReadDir(parts[0]) // or it is gone
		for _, e := range entries {
			switch at := path.Join(parts[0], e.Name()); {
			case !e.IsDir():
			case e.Name() != sessions:
				parts = append(parts, at)
			default:
				made, _ := os.ReadDir(at)
				for _, e := range made {
					if e.IsDir() && e.Name() != Kept {
						list = append(list, path.Join(at, e.Name()))
					}
				}
			}
		}
	}
	return list
}

// HasWaiting reports whether something that a session held back is in a [FolderBefore]: nothing moved it since.
func HasWaiting(folder string) bool {
	things, _ := filepath.Glob(folder + "/*/*/*")
	return slices.ContainsFunc(things, func(at string) bool {
		info, err := os.Lstat(at)
		return err == nil && info.IsDir()
	})
}

// Forget removes what is held back of a folder of the user's that is gone. It leaves claudebox's home by no link.
func Forget(home, folder string) {
	if root, err := os.OpenRoot(Held(home, "/")); err == nil {
		_ = root.RemoveAll(strings.TrimPrefix(mirrored(folder), "/")) // most have nothing there
		root.Close()
	}
	RemoveStops(Stops(home), folder, Held(home, folder))
}

// Gather brings what sessions hold back of a folder to where a session in it has it: to held. from are folders with
// those of sessions, as those of folders above. Where a session lives, nothing changes for it: what is moved is seen at
// its path of before, too.
func Gather(stops, folder, held string, from []string) error {
	var faults []error
	for _, in := range from {
		entries, _ := os.ReadDir(in) // most are not there
		for _, e := range entries {
			if e.Name() != Kept {
				faults = append(faults, gatherAll(stops, folder, held, path.Join(in, e.Name())))
			}
		}
	}
	return errors.Join(faults...)
}

// gatherAll brings what one session holds back.
func gatherAll(stops, folder, held, session string) error {
	root, err := beneath.Open(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	from, err := beneath.Open(session)
	if err != nil {
		return nil // it has ended, or an agent did that to itself
	}
	defer from.Close()
	var faults []error
	ids, _ := names(from)
	for _, id := range ids {
		faults = append(faults, gather(stops, root, held, from, id))
	}
	if at := InSession(held, path.Base(session)); at != session {
		leadThere(root, at)
	}
	return errors.Join(faults...)
}

// leadThere has the .git files that a session holds back lead to where it holds back what they belong to: a session in
// a folder below has that alone.
func leadThere(root *beneath.Folder, session string) {
	each(root, session, func(f found, _ func() error) {
		of, rest, _ := strings.Cut(ThingOf(f.place, thing, root.Join(f.rel)), "/")
		if git.IsDotGit(path.Base(f.rel)) && of == path.Base(session) {
			to := path.Join(InSession(Inside(root.Path()), of), rest)
			_ = f.place.Replace(thing, []byte("gitdir: "+to+"\n"), 0o644) // else it leads where it led
		}
	})
}

// gather brings one thing.
func gather(stops string, root *beneath.Folder, held string, from *beneath.Folder, id string) error {
	rel, err := readWhere(root, from, id)
	if err != nil {
		return nil
	}
	session := path.Base(from.Path())
	text, err := root.Readlink(rel)
	of, deep, is := placeOf(session, text)
	if err != nil || !is || of != id {
		return nil // it is not there now
	}
	top, err := beneath.Open(held)
	if err != nil {
		return err
	}
	defer top.Close()
	in, err := openMade(top, ".", root.Path(), session)
	if err != nil {
		return err
	}
	defer in.Close()
	at := path.Join(in.inside, id)
	if in.Path() != from.Path() { // else that was done by a launch that was killed
		if err := in.Symlink(at, id); err != nil {
			return err
		}
		if err := unix.Renameat2(from.FD(), id, in.FD(), id, unix.RENAME_EXCHANGE); err != nil {
			return errors.Join(err, in.Remove(id))
		}
	}
	to := linkTo(stops, rel, path.Join(at, deep))
	if to != path.Join(at, deep) {
		in.stopAt(stops, id)
	}
	if text == to {
		return nil
	}
	return relink(root, rel, text, to)
}

// relink gives a link another text, if it has still the one that it had.
func relink(root *beneath.Folder, rel, was, text string) error {
	parent, err := root.Sub(path.Dir(rel))
	if err != nil {
		return nil // it is gone
	}
	defer parent.Close()
	if seemsLink(parent, linkAside) { // of a launch that was killed
		_ = parent.Remove(linkAside)
	}
	if err := parent.Symlink(text, linkAside); err != nil {
		return err
	}
	exchange := func() error {
		return unix.Renameat2(parent.FD(), linkAside, parent.FD(), path.Base(rel), unix.RENAME_EXCHANGE)
	}
	err = exchange()
	if now, _ := parent.Readlink(linkAside); err == nil && now != was {
		err = exchange()
	}
	return errors.Join(err, parent.Remove(linkAside))
}
