package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/survey"
)

// Ending is how [BringOut] brings things out.
type Ending struct {
	// Alone reports whether no session that lives has a path below root. Else a folder there that is a repository by
	// what is in it is left to the end of the last one: the agent of another could write in it.
	Alone func(rel string) bool
	// Left is called with each repository that stays held back: it did not become the user's yet. It lies at a path.
	Left func(rel, at string)
	// Leads reports whether a file called .git may stand at a path below root.
	Leads func(rel string, content []byte) bool
	// Changed is called with what git does not find any more, below root.
	Changed func(git.Change)
}

// BringOut puts what a session held back where its links are, below root. It returns what came out. A folder called
// .git stays where it is, behind its link, and a later session goes on in it. What else is a repository comes out as
// none, see [git.Disarm]. What has no link any more was removed, or somebody has put the link away: it is kept beside
// the session's own folder, which is held, until a later session has something to keep. What was not held back below
// root stays.
func BringOut(root *beneath.Folder, held string, end Ending) (out []string, err error) {
	made, err := beneath.Open(held)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer made.Close()
	ids, err := names(made)
	if err != nil {
		return nil, err
	}
	var faults []error
	var missing []string
	left := false
	for _, id := range ids {
		rel, fault := end.bringOut(root, made, id)
		switch {
		case errors.Is(fault, errLeft), errors.Is(fault, errElsewhere):
			left = true
		case errors.Is(fault, errNothing), errors.Is(fault, errRemoved) && !holds(made, id):
			dropAside(root, made, id)
			_ = made.RemoveAll(id)
		case errors.Is(fault, errRemoved):
			missing = append(missing, id)
		case fault != nil:
			faults = append(faults, fault)
		default:
			out = append(out, rel)
		}
	}
	left = left || len(missing) > 0 && !end.Alone(".") // a guard of another session may have its link
	if len(missing) > 0 {
		found, stays := end.searchFor(root, made, missing)
		out, left = append(out, found...), left || stays
	}
	if len(faults) == 0 && !left {
		putAway(held)
	}
	return out, errors.Join(faults...)
}

// dropAside removes the link that was put aside for a repository that has become the user's.
func dropAside(root, made *beneath.Folder, id string) {
	rel, err := readWhere(root, made, id)
	aside := path.Join(path.Dir(rel), linkAside)
	if text, none := root.Readlink(aside); err == nil && none == nil {
		if of, _, is := placeOf(path.Base(made.Path()), text); is && of == id {
			_ = root.Remove(aside) // else it leads nowhere
		}
	}
}

// holds reports whether there is a thing in a place, and not the link that was to be exchanged with it.
func holds(made *beneath.Folder, id string) bool {
	at := id
	for {
		if what, err := made.Look(at + "/x"); err != nil || what.Kind != beneath.Dir {
			break
		}
		at += "/x"
	}
	what, err := made.Look(path.Join(at, thing))
	return err != nil || what.Kind != beneath.Absent && !seemsLink(made, path.Join(at, thing))
}

// putAway removes a session's own folder, or keeps what is left in it, in the place of what was kept before.
func putAway(held string) {
	in, err := beneath.Open(path.Dir(held))
	if err != nil {
		return // an agent of another session did that to itself
	}
	defer in.Close()
	own := path.Base(held)
	if in.Remove(own) == nil {
		return
	}
	_ = in.RemoveAll(Kept)
	_ = in.Rename(own, Kept) // or it stays as it is
}

// mostLinks is how many entries of a folder are looked at for links that were moved.
const mostLinks = 2_000_000

// searchFor brings out what has its link elsewhere than was noted, as after a folder was closed, or claudebox killed.
// left says that some of it stays held back.
func (end Ending) searchFor(root, made *beneath.Folder, missing []string) (out []string, left bool) {
	var links []string
	survey.OpenUntil(root, func() []string {
		seen := survey.Walk(root, survey.Question{Limit: mostLinks, LinksSince: 1}, nil)
		links = append(seen.NewLinks, seen.Git...)
		return seen.Closed
	})
	for _, rel := range links {
		text, err := root.Readlink(rel)
		if err != nil {
			continue
		}
		id, _, is := placeOf(path.Base(made.Path()), text)
		at := slices.Index(missing, id)
		if !is || at < 0 {
			continue
		}
		missing[at] = "" // it is found
		if writeWhere(made, id, root.Join(rel)) != nil {
			continue
		}
		rel, err := end.bringOut(root, made, id)
		if err == nil {
			out = append(out, rel)
		}
		left = left || errors.Is(err, errLeft)
	}
	return out, left
}

// Repository is a git folder that is held back.
type Repository struct {
	Rel string // where it was made, below the root
	At  string // where it is
}

// Untangle puts back the links that a session held back: of two guards that saw one thing, the second took a link. It
// brings out, where no other session lives, files called .git that lead to what is held back, as those of its worktrees
// and submodules do: they lead nowhere outside.
func Untangle(root *beneath.Folder, held string, alone func(rel string) bool) {
	each(root, held, func(f found, drop func() error) {
		leads := git.IsDotGit(path.Base(f.rel)) && ThingOf(f.place, thing, root.Join(f.rel)) != ""
		if (seemsLink(f.place, thing) || leads && alone(f.rel)) && f.exchange() == nil {
			_ = drop()
		}
	})
}

// Repositories lists the folders called .git that a session holds back, one in another after that one. Nothing may run
// inside any more.
func Repositories(root *beneath.Folder, held string) (list []Repository) {
	each(root, held, func(f found, _ func() error) {
		what, err := f.place.Look(thing)
		if err == nil && what.Kind == beneath.Dir && path.Base(f.rel) == ".git" {
			list = append(list, Repository{f.rel, f.place.Join(thing)})
		}
	})
	slices.SortFunc(list, func(a, b Repository) int { return strings.Compare(a.Rel, b.Rel) })
	return list
}

// Unlink takes the link out of the place of a repository, which is then to be taken from where it is. Neither it nor
// what puts the link back needs room on a disk. drop removes the link for good.
func (r Repository) Unlink(root *beneath.Folder) (back, drop func() error, err error) {
	if !seemsLink(root, r.Rel) {
		return nil, nil, unix.ENOENT
	}
	aside := path.Join(path.Dir(r.Rel), linkAside)
	back = func() error { return renameNew(root, aside, r.Rel) }
	drop = func() error { return root.Remove(aside) }
	return back, drop, root.Rename(r.Rel, aside)
}

// renameNew renames a name to another one in its folder, where nothing is.
func renameNew(root *beneath.Folder, from, to string) error {
	parent, err := root.Sub(path.Dir(from))
	if err != nil {
		return err
	}
	defer parent.Close()
	return unix.Renameat2(parent.FD(), path.Base(from), parent.FD(), path.Base(to), unix.RENAME_NOREPLACE)
}

// linkAside is the name of a link while its repository becomes one of the user's.
const linkAside = ".claudebox-link"

// found is a thing that is held back, and the folder with its link.
type found struct {
	rel           string
	place, parent *beneath.Folder
}

func (f found) close() {
	f.place.Close()
	f.parent.Close()
}

// exchange exchanges the thing with its link.
func (f found) exchange() error {
	return unix.Renameat2(f.place.FD(), thing, f.parent.FD(), path.Base(f.rel), unix.RENAME_EXCHANGE)
}

// each calls do with each thing that a session holds back and whose link is where it is to be. drop removes the thing's
// place.
func each(root *beneath.Folder, held string, do func(f found, drop func() error)) {
	made, err := beneath.Open(held)
	if err != nil {
		return
	}
	defer made.Close()
	ids, _ := names(made) // what is not listed comes out as it is
	for _, id := range ids {
		if f, err := find(root, made, id); err == nil {
			do(f, func() error { return made.RemoveAll(id) })
			f.close()
		}
	}
}

// errRemoved is the error for what the agent has removed.
var errRemoved = errors.New("the agent has removed it")

// errNothing is the error for a place in which there is nothing that could come out.
var errNothing = errors.New("there is nothing in it")

// find looks for a thing where its link is to be.
func find(root, made *beneath.Folder, id string) (f found, err error) {
	if f.rel, err = readWhere(root, made, id); err != nil {
		return f, err
	}
	if path.Base(f.rel) == linkAside {
		f.rel = putLinkBack(root, made, id, f.rel)
	}
	if f.parent, err = root.Sub(path.Dir(f.rel)); err != nil {
		return f, errRemoved
	}
	text, err := f.parent.Readlink(path.Base(f.rel))
	of, deep, is := placeOf(path.Base(made.Path()), text)
	if err != nil || !is || of != id {
		f.parent.Close()
		return f, errRemoved
	}
	// It lies as deep as it lay when it was made, wherever its link is now.
	if f.place, err = made.Sub(path.Join(id, path.Dir(deep))); err != nil {
		f.parent.Close()
		return f, fmt.Errorf("%s: its place is not as it was made: %w", diag.Name(f.rel), err)
	}
	return f, nil
}

// putLinkBack gives the link of a repository its own name again, after an end that was cut short, unless the user has
// made one there since. It returns where the link is.
func putLinkBack(root, made *beneath.Folder, id, aside string) string {
	git := path.Join(path.Dir(aside), ".git")
	if !seemsLink(root, aside) {
		return git
	}
	if renameNew(root, aside, git) != nil {
		return aside
	}
	_ = writeWhere(made, id, root.Join(git)) // else it is seen that it has its name
	return git
}

// errLeft is the error for what stays held back.
var errLeft = errors.New("it stays held back")

// bringOut puts one thing back, if its link is where it was.
func (end Ending) bringOut(root, made *beneath.Folder, id string) (rel string, err error) {
	f, err := find(root, made, id)
	if err != nil {
		return "", err
	}
	defer f.close()
	name := path.Base(f.rel)
	what, err := f.place.Look(thing)
	if err == nil && what.Kind == beneath.Dir {
		if git.IsDotGit(name) || name == linkAside {
			end.Left(f.rel, f.place.Join(thing))
			return "", errLeft
		}
		if isRepository(f.place, thing) && !end.Alone(f.rel) {
			return "", errLeft
		}
		if err := end.disarm(f); err != nil {
			return "", err
		}
	}
	if err == nil && what.Kind == beneath.Regular && git.IsDotGit(name) {
		if !end.Alone(f.rel) { // what it leads to may be another session's
			return "", errLeft
		}
		const limit = 1 << 20
		if content, err := f.place.Read(thing, limit); err != nil || !end.Leads(f.rel, content) {
			return f.rel, end.putBeside(f)
		}
	}
	err = f.exchange()
	if errors.Is(err, unix.ENOENT) { // the agent has removed the thing, and not the link
		return "", errors.Join(f.parent.Remove(name), errNothing)
	}
	if err != nil {
		return "", err
	}
	_ = made.RemoveAll(id) // what does not go stays in the instance
	return f.rel, nil
}

// whyHeld is why git does not find what comes out.
const whyHeld = "a repository that was made inside and did not become yours"

// disarm has git take a folder that comes out for no repository, and none in it.
func (end Ending) disarm(f found) error {
	m := git.Mender{Root: f.place}
	err := m.Apply(git.Repair{Do: git.Disarm, Rel: thing, Why: whyHeld})
	for _, c := range m.Changes {
		c.Rel, c.To = f.rel+strings.TrimPrefix(c.Rel, thing), f.rel+strings.TrimPrefix(c.To, thing)
		end.Changed(c)
	}
	return err
}

// putBeside brings a .git file out by another name.
func (end Ending) putBeside(f found) error {
	m := git.Mender{Root: f.place}
	if err := m.Apply(git.Repair{Do: git.Rename, Rel: thing, Why: "it leads git elsewhere"}); err != nil {
		return err
	}
	to := path.Base(f.rel) + strings.TrimPrefix(m.Changes[0].To, thing)
	if err := unix.Renameat2(f.place.FD(), m.Changes[0].To, f.parent.FD(), to, unix.RENAME_NOREPLACE); err != nil {
		return err
	}
	end.Changed(git.Change{
		Rel: f.rel, To: path.Join(path.Dir(f.rel), to), Text: "renamed to " + to + ": it leads git elsewhere",
	})
	return f.parent.Remove(path.Base(f.rel))
}

// isRepository reports whether git takes a folder for a repository.
func isRepository(in *beneath.Folder, rel string) bool {
	what, err := in.Look(rel + "/HEAD")
	return err != nil || what.Kind != beneath.Absent
}

// names lists a session's own folder. An agent can make any number of names there.
func names(made *beneath.Folder) ([]string, error) {
	dir, err := made.OpenDir(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Readdirnames(-1)
}
