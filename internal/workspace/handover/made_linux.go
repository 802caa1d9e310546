package handover

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/identity"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/guard"
)

// Made is a repository that the agent has made in a working tree, and that was held back.
type Made struct {
	Outer  string // its git folder, as it is to be; nothing is there
	At     string // where it is
	Folder string // the folder of the place that it becomes
	Inside string // where it was inside; empty: at Outer
}

// Adopted is what became of one: the user's, with remarks; or not, and why.
type Adopted struct {
	Told []Remark
	Err  error
}

const (
	// patienceInAll is how long those that do not become the user's may hold up an end.
	patienceInAll = time.Minute
	// adopters is how many are adopted at the same time: most of it is waiting for boxes.
	adopters = 4
	// waiting is which part of the time of [Tools.limit] a script may take while others wait.
	waiting = 4
)

// errLate is returned for a repository that was not looked at.
var errLate = errors.New("those before it took too long; the next session looks at it")

// Adopt makes repositories ones of the user's: each a fresh git folder by the user's git, in which what the agent has
// crosses. The places of r are those that they may borrow from. Of one that does not become the user's, the agent's own
// is where it was, and nothing where it was to be.
//
// Each has boxes of its own. One that does not answer soon is asked again when all others are done: it does not hold
// them up.
func Adopt(r Request, all []Made) []Adopted {
	done := make([]Adopted, len(all))
	limit := r.Tools.limit()
	r.Tools.Time = limit / waiting
	e := &end{Request: r}
	places := make(chan int)
	var each sync.WaitGroup
	for range min(adopters, len(all)) {
		each.Go(func() {
			for i := range places {
				done[i] = e.adopt(all[i])
			}
		})
	}
	for i := range all {
		places <- i
	}
	close(places)
	each.Wait()
	e.Tools.Time = limit
	for i, m := range all {
		if errors.Is(done[i].Err, errSilent) {
			if again := e.adopt(m); !errors.Is(again.Err, errLate) {
				done[i] = again
			}
		}
		m.note(r.Tools, done[i].Err)
	}
	return done
}

// end is that of a session, in which repositories are adopted.
type end struct {
	Request
	mu    sync.Mutex
	spent time.Duration // on those that did not become the user's
}

// adopt adopts one.
func (e *end) adopt(m Made) (became Adopted) {
	e.mu.Lock()
	late := e.spent > patienceInAll
	e.mu.Unlock()
	if late {
		return Adopted{Err: errLate}
	}
	began := time.Now()
	parent, err := beneath.Open(path.Dir(m.Outer))
	if err != nil {
		return Adopted{Err: err}
	}
	defer parent.Close()
	told, err := m.adopting(e.Request, parent, path.Dir(m.Outer)).adopt()
	became = Adopted{Told: in(path.Dir(m.Outer), told), Err: err}
	if became.Err != nil {
		e.mu.Lock()
		e.spent += time.Since(began)
		e.mu.Unlock()
	}
	return became
}

// adopting is a repository of the agent's that is becoming one of the user's. Its place is one of claudebox's own until
// the user's git folder is whole: that lies in [fresh], and the agent's where it was found.
type adopting struct {
	*live
	made   Made
	parent *beneath.Folder // in which the user's git folder is to be
}

// fresh is the folder of a place in which the git folder of a repository that is being adopted is made.
const fresh = "fresh"

// adopting begins the adoption of one. tree is its working tree.
func (m Made) adopting(r Request, parent *beneath.Folder, tree string) *adopting {
	p := m.place(tree)
	p.Outer, p.Key, p.inner = m.Folder+"/"+fresh+"/.git", Name(m.Outer), m.At
	return &adopting{live: r.live(p), made: m, parent: parent}
}

// place is the one that it becomes.
func (m Made) place(tree string) Place {
	return Place{Outer: m.Outer, Folder: m.Folder, Trees: []Tree{{".", tree}}}
}

// adopt makes the user's git folder, with all that crosses, and puts it in its place. Of what fails nothing is left.
func (a *adopting) adopt() (list []Remark, err error) {
	defer os.RemoveAll(a.made.Folder + "/" + fresh)
	if err := a.lay(); err != nil {
		return nil, err
	}
	unlock, err := a.place.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	c, err := a.take()
	if err == nil {
		err = a.takeListed(c.settings)
	}
	if err == nil {
		err = a.moveIn()
	}
	if err != nil {
		return nil, errors.Join(err, a.undo())
	}
	added := a.additionsTo(a.place, c.parts)
	added.lead(guard.Thing(a.made.Inside))
	list = append(a.events, a.remarks...)
	added.adopt(false)
	if added.adopt(true) > 0 {
		f := a.facts()
		f.final = true
		a.place = added.place
		if err := a.settle(f); err != nil {
			list = append(list, Remark{About: a.made.Outer, Text: err.Error()})
		}
		for _, r := range slices.Concat(a.events, a.remarks) {
			if !slices.Contains(list, r) {
				list = append(list, r)
			}
		}
	}
	return slices.Concat(list, added.remarks, c.inside(a.place)), nil
}

// lay makes the user's git folder, which is empty, by the user's git.
func (a *adopting) lay() error {
	p, tree := a.place, a.place.Trees[0].Path
	if err := os.RemoveAll(path.Dir(p.Outer)); err != nil { // of an end that was cut short
		return err
	}
	for _, dir := range []string{a.outer().workTree(), path.Dir(p.Outer)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if strings.Contains(a.made.Outer, "\n") {
		return unfit{errors.New("there is a line feed in its path, which git prints as it is: rename the folder")}
	}
	if what, err := a.parent.Look(path.Base(a.made.Outer)); err != nil || what.Kind != beneath.Absent {
		return cmp.Or(err, errTaken)
	}
	once := a.made.place(tree)
	if _, err := os.Lstat(once.Inner()); err == nil { // of a repository that was there once
		if err := once.forget(); err != nil {
			return err
		}
	}
	script := prelude + "GIT_DIR=$C GIT_WORK_TREE=${C%/.git} g init -q --template= --initial-branch=main || exit 1\n"
	if a.made.Outer != tree+"/.git" {
		script += "g config --file \"$C/config\" core.worktree " + diag.Quote(tree) + " || exit 1\n"
	}
	if _, err := a.outer().run(script, "", true); err != nil {
		return err
	}
	if err := os.WriteFile(p.borrowing(), p.borrowed(), 0o600); err != nil {
		return err
	}
	if borrows(a.made.At) {
		if err := a.dissociate(); err != nil {
			return fmt.Errorf("it borrows from another repository: %w", err)
		}
	}
	return a.copy()
}

// errTaken is returned where something stands in the place of a repository that is to be the user's.
var errTaken = errors.New("something else has come to its place meanwhile")

// copy copies the agent's if it lies on another file system than its place.
func (a *adopting) copy() error {
	if device(a.made.At) == device(a.made.Folder) {
		return nil
	}
	a.place.inner = path.Dir(a.place.Outer) + "/agents"
	if err := a.Tools.CopyPath(a.made.At, a.place.inner); err != nil {
		return fmt.Errorf("%w%s", err, a.place.spaceRemedy(err.Error()))
	}
	return nil
}

// device is the file system on which something lies.
func device(at string) uint64 {
	var st unix.Stat_t
	_ = unix.Lstat(at, &st) // what is not there is found so later
	return st.Dev
}

// take brings all to the user's git folder that crosses.
func (a *adopting) take() (c claim, err error) {
	p := a.place
	where := a.inner()
	where.folder = p.inner
	answer, err := where.run(claiming(p, a.made.Inside), "", true)
	if err != nil {
		return c, err
	}
	if c, err = parseClaim(string(answer), p.Trees); err != nil {
		return c, err
	}
	if strings.Contains(c.settings, "extensions.objectformat\nsha256") {
		return c, unfit{errors.New("its objects have names of SHA-256, and a repository of yours is made with SHA-1")}
	}
	if len(c.shallow) > 0 { // a clone without its whole history says where that ends
		if err := os.WriteFile(p.Outer+"/shallow", []byte(ended(c.shallow)), 0o644); err != nil {
			return c, err
		}
	}
	empty := Side{Trees: map[string]State{".": {Head: "ref: refs/heads/main", NoIndex: true}}}
	m := memory{
		Identity: p.identity(), Common: empty, Settings: p.settings(), Named: map[string]string{}, From: p.inner,
		Path: a.made.Outer, Thing: guard.Thing(a.made.Inside),
	}
	if err := p.remember(m); err != nil {
		return c, err
	}
	f := a.facts()
	f.final = true
	if _, err = a.cross(m, c.side, empty, f, stamped{}); errors.Is(err, errInUse) {
		err = a.settle(f)
	}
	if err == nil {
		err = cmp.Or(a.silent, c.side.lacking(p, a.remarks))
	}
	return c, err
}

// moveIn puts the user's git folder in its place, and then the agent's where it is the inner folder of that. If
// claudebox is killed between, the next session does the second.
func (a *adopting) moveIn() error {
	made := a.place
	id, err := moveIn(made.Outer, a.parent, path.Base(a.made.Outer))
	if err != nil {
		return err
	}
	a.place = a.made.place(made.Trees[0].Path)
	for _, list := range [][]Remark{a.events, a.remarks} {
		for i := range list {
			if list[i].About == made.Outer {
				list[i].About = a.made.Outer
			}
		}
	}
	m, err := a.place.recall()
	if err == nil && id != "" {
		m.Identity = string(id)
		err = a.place.remember(m)
	}
	if err = cmp.Or(err, a.place.takeIn(made.inner)); err != nil {
		a.remarks = append(a.remarks, Remark{
			About: path.Dir(a.made.Outer),
			Text:  "the agent's own git folder for it stays in " + a.made.At + ": " + err.Error(),
		})
		return nil
	}
	_ = os.RemoveAll(a.made.At) // if it was copied
	return nil
}

// takeIn makes the agent's own git folder of a repository that has become the user's the inner one of the place.
func (p Place) takeIn(from string) error {
	own, err := beneath.Open(from)
	if err != nil {
		return err
	}
	defer own.Close()
	_ = own.Remove(alternates) // an empty one
	if err := own.Create(alternates, p.borrowed(), 0o600); err != nil {
		return err
	}
	return os.Rename(from, p.Inner())
}

// moveIn moves a git folder of claudebox's own to a name in a folder of the user's, in one step: nothing that stands
// there is followed or replaced. What is on another file system is copied beside the name before. It returns the
// identity that the folder has there, see [Place.identity], if that is another one.
func moveIn(from string, parent *beneath.Folder, name string) (identity.ID, error) {
	err := move(from, parent, name)
	if errors.Is(err, unix.EXDEV) {
		return moveCopy(from, parent, name)
	}
	return "", err
}

// move is [moveIn] on one file system.
func move(from string, parent *beneath.Folder, name string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, parent.FD(), name, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // then a folder replaces at most an empty one
		err = unix.Renameat(unix.AT_FDCWD, from, parent.FD(), name)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist), errors.Is(err, unix.ENOTDIR): // also ENOTEMPTY
		return errTaken
	}
	return &os.LinkError{Op: "rename", Old: from, New: parent.Join(name), Err: err}
}

// moveCopy is [moveIn] to another file system. All goes by descriptors: who exchanges the folder in which it copies
// has no say in where that is.
func moveCopy(from string, parent *beneath.Folder, name string) (identity.ID, error) {
	beside := ".claudebox-" + rand.Text()
	if err := parent.Mkdir(beside, 0o700); err != nil {
		return "", err
	}
	defer parent.Remove(beside) // if it is empty
	folder, err := parent.Sub(beside)
	if err != nil {
		return "", err
	}
	defer folder.Close()
	to := fmt.Sprintf("/proc/self/fd/%d/git", folder.FD())
	defer os.RemoveAll(to) // nothing, if it was moved
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return "", err
	}
	id := identity.At(folder.FD(), "git/objects")
	return id, move(to, parent, name)
}

// lacking returns an error if a branch that the agent has is not one of the user's. told is what a hand-over said.
func (s Side) lacking(p Place, told []Remark) error {
	m, err := p.recall()
	for _, name := range slices.Sorted(maps.Keys(s.Refs)) {
		if strings.HasPrefix(name, "refs/heads/") && m.Common.Refs[name] != s.Refs[name] && err == nil {
			why := "it did not cross"
			for _, r := range told {
				if r.About == name {
					why = r.Text
				}
			}
			err = unfit{fmt.Errorf("its branch %s: %s", strings.TrimPrefix(name, "refs/heads/"), why)}
		}
	}
	return err
}

// undo leaves nothing of what [adopting.take] has begun.
func (a *adopting) undo() error {
	if own, fault := beneath.Open(a.made.At); fault == nil {
		_ = own.Remove(alternates)
		own.Close()
	}
	if err := os.Remove(a.place.memoryFile()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// alternates is the file of a git folder that names objects elsewhere.
const alternates = "objects/info/alternates"

// borrowed is what an inner folder has in that file: the user's objects.
func (p Place) borrowed() []byte { return []byte(p.Shared() + "/objects\n") }

// borrowing is the file that a box has in that place while a repository becomes the user's: where claudebox is killed
// then, the agent's does not name what is not there.
func (p Place) borrowing() string { return path.Dir(p.Outer) + "/alternates" }

// borrows reports whether a git folder of the agent's names objects elsewhere.
func borrows(at string) bool {
	folder, err := beneath.Open(at)
	if err != nil {
		return true
	}
	defer folder.Close()
	what, err := folder.Look(alternates)
	return err != nil || what.Kind != beneath.Absent && (what.Kind != beneath.Regular || what.Stamp.Size > 0)
}

// dissociate gives a repository of the agent's all that it borrows from other places.
func (a *adopting) dissociate() error {
	var bind []string
	for _, p := range a.Places {
		bind = append(bind, p.Outer+"/objects", p.Shared()+"/objects")
		bind = append(bind, p.Inner()+"/objects", p.Outer+"/objects")
	}
	box := side{place: a.place, tools: a.Tools, boxed: true, folder: a.made.At}
	box.place.inner = ""
	script := prelude + inCommon + "g repack -a -d -q && rm -f \"$C/" + alternates + "\"\n"
	_, err := box.run(script, "", true, bind...)
	return err
}

// claim is what a repository says of itself.
type claim struct {
	side     Side
	shallow  []string // commits at which its history ends
	settings string   // as git lists them
	hooks    []string
	parts    string // what [listMade] prints
}

// section stands between the parts of a claim; no text of git's has it.
const section = "\x00\x02\x00"

// claiming prints a claim of an inner folder, which was held back at a path inside; empty: it was not.
func claiming(p Place, inside string) string {
	top := ""
	for at := path.Dir(inside); at != "." && top == ""; at = path.Dir(at) {
		if pathname.Below(p.Trees[0].Path, at) {
			top = strings.TrimSuffix(at, "/") + "/"
		}
	}
	const next = "printf '\\0\\2\\0'\n"
	const shallow = "top=%s\nif [ -f \"$C/shallow\" ]; then head -c %d \"$C/shallow\"; fi\n"
	return prelude + fmt.Sprintf(shallow, diag.Quote(top), configLimit) +
		next + reading(p, true) + next + listSettings + " || exit 1\n" + next + `set +f
for h in "$C"/hooks/*; do case $h in *.sample) ;; *) [ -f "$h" ] && printf 'hooks/%s\0' "${h##*/}";; esac; done
` + next + listMade
}

func parseClaim(answer string, trees []Tree) (c claim, err error) {
	parts := strings.Split(answer, section)
	if len(parts) != 5 {
		return c, errOdd
	}
	none := func(o string) bool { return !isObject(o) }
	if list := lines(parts[0]); !slices.ContainsFunc(list, none) {
		c.shallow = list
	}
	c.settings, c.hooks, c.parts = parts[2], strings.Split(parts[3], "\x00"), parts[4]
	c.side, err = parse([]byte(parts[1]), trees)
	return c, err
}

// crossed are the beginnings of settings that every repository has, or that cross.
var crossed = []string{
	"core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "core.ignorecase",
	"core.precomposeunicode", "core.symlinks", "core.worktree", "extensions.", "remote.", "branch.", "submodule.",
}

// inside tells which hooks and settings of a repository of the agent's the user's does not have.
func (c claim) inside(p Place) (told []Remark) {
	list := c.hooks[:len(c.hooks)-1]
	for setting := range strings.SplitSeq(c.settings, "\x00") {
		name, _, _ := strings.Cut(setting, "\n")
		if name != "" && !hasAny(name, crossed...) && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	if len(list) > 0 {
		const most = 5
		told = []Remark{{About: path.Dir(p.Outer), Text: "it is yours now; inside only: " + diag.Some(list, most)}}
	}
	return told
}
