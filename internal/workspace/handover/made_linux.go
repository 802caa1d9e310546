package handover

import (
	"cmp"
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
)

// Made is a repository that the agent has made in a working tree, and that was held back.
type Made struct {
	Outer  string // its git folder, as it is to be; nothing is there
	At     string // where it is
	Folder string // the folder of the place that it becomes
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

// live is the place that a repository becomes. tree is its working tree.
func (m Made) live(r Request, tree string) *live {
	return &live{
		place: Place{Outer: m.Outer, Folder: m.Folder, Trees: []Tree{{".", tree}}}, tools: r.Tools,
		hidden: under(r.Hidden), held: under(r.Held),
	}
}

// end is that of a session, in which repositories are adopted.
type end struct {
	Request
	mu    sync.Mutex
	spent time.Duration // on those that did not become the user's
}

// adopt adopts one, or undoes what was begun.
func (e *end) adopt(m Made) (became Adopted) {
	e.mu.Lock()
	late := e.spent > patienceInAll
	e.mu.Unlock()
	if late {
		return Adopted{Err: errLate}
	}
	began := time.Now()
	a := &adopting{live: m.live(e.Request, path.Dir(m.Outer)), made: m}
	if became.Err = a.lay(e.Places); became.Err == nil {
		if became.Told, became.Err = a.adoptWhole(); became.Err != nil {
			became.Err = errors.Join(became.Err, a.undo())
		}
	}
	if became.Err != nil {
		e.mu.Lock()
		e.spent += time.Since(began)
		e.mu.Unlock()
	}
	return became
}

// adopting is a repository of the agent's that is becoming one of the user's.
type adopting struct {
	*live
	made   Made
	copied bool // it lies on another file system than its place
}

// lay makes the user's git folder, which is empty, by the user's git.
func (a *adopting) lay(places []Place) error {
	p := a.place
	if borrows(a.made.At) {
		if err := a.dissociate(places); err != nil {
			return fmt.Errorf("it borrows from another repository: %w", err)
		}
	}
	if err := os.MkdirAll(a.outer().workTree(), 0o700); err != nil {
		return err
	}
	if strings.Contains(p.Outer, "\n") {
		return unfit{errors.New("there is a line feed in its path, which git prints as it is: rename the folder")}
	}
	if err := os.MkdirAll(path.Dir(p.Outer), 0o755); err != nil { // of a submodule it may not be there
		return err
	}
	if _, err := os.Lstat(p.Inner()); err == nil { // of a repository that was there once
		if err := p.forget(); err != nil {
			return err
		}
	}
	script := prelude + "GIT_DIR=$C GIT_WORK_TREE=" + diag.Quote(p.Trees[0].Path) +
		" g init -q --template= --initial-branch=main || exit 1\n"
	if _, err := a.outer().run(script, "", true); err != nil {
		return errors.Join(err, os.RemoveAll(p.Outer))
	}
	return nil
}

// adoptWhole adopts one that was laid, with what is in it.
func (a *adopting) adoptWhole() (list []Remark, err error) {
	unlock, err := a.place.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	c, err := a.take()
	if err != nil {
		return nil, err
	}
	a.remarks = append(a.remarks, a.adoptParts(c.parts)...)
	if err := a.takeListed(c.settings); err != nil {
		return nil, err
	}
	a.tellInside(c)
	_ = os.RemoveAll(a.made.At) // if it was copied
	return append(a.events, a.remarks...), nil
}

// take brings all to the user's git folder that crosses, and the agent's own to where it is the inner folder of a
// place. If claudebox is killed before that, the user's is empty yet; else the next session goes on with it.
// The place is locked.
func (a *adopting) take() (c claim, err error) {
	p := a.place
	where := a.inner()
	where.folder = a.made.At
	answer, err := where.run(claiming(p), "", true)
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
		Identity: p.identity(), Common: empty, Settings: p.settings(), Named: map[string]string{},
	}
	if err := p.remember(m); err != nil {
		return c, err
	}
	if err = os.Rename(a.made.At, p.Inner()); errors.Is(err, unix.EXDEV) {
		a.copied = true
		if err = a.tools.Copy(a.made.At, p.Inner()); err != nil {
			err = fmt.Errorf("%w%s", err, p.spaceRemedy(err.Error()))
		}
	}
	if err != nil {
		return c, err
	}
	f := a.facts()
	f.final = true
	if _, err = a.cross(m, c.side, empty, f, stamped{}); errors.Is(err, errInUse) {
		err = a.settle(f)
	}
	if err == nil {
		err = cmp.Or(a.silent, a.lacks(c.side))
	}
	return c, err
}

// lacks returns an error if a branch that the agent has is not one of the user's.
func (l *live) lacks(in Side) error {
	m, err := l.place.recall()
	for _, name := range slices.Sorted(maps.Keys(in.Refs)) {
		if strings.HasPrefix(name, "refs/heads/") && m.Common.Refs[name] != in.Refs[name] && err == nil {
			why := "it did not cross"
			for _, r := range l.remarks {
				if r.About == name {
					why = r.Text
				}
			}
			err = unfit{fmt.Errorf("its branch %s: %s", strings.TrimPrefix(name, "refs/heads/"), why)}
		}
	}
	return err
}

// undo puts the agent's own back where it was, and leaves nothing where it was to be.
func (a *adopting) undo() error {
	p, err := a.place, error(nil)
	switch _, moved := os.Lstat(p.Inner()); {
	case a.copied:
		err = os.RemoveAll(p.Inner())
	case moved == nil:
		err = os.Rename(p.Inner(), a.made.At)
	}
	if own, fault := beneath.Open(a.made.At); fault == nil {
		_ = own.Remove(alternates) // which take has made
		own.Close()
	}
	if fault := os.Remove(p.memoryFile()); !errors.Is(fault, fs.ErrNotExist) {
		err = errors.Join(err, fault)
	}
	return errors.Join(err, os.RemoveAll(p.Outer))
}

// alternates is the file of a git folder that names objects elsewhere.
const alternates = "objects/info/alternates"

// borrows reports whether a git folder of the agent's names objects elsewhere.
func borrows(at string) bool {
	folder, err := beneath.Open(at)
	if err != nil {
		return true
	}
	defer folder.Close()
	what, err := folder.Look(alternates)
	return err != nil || what.Kind != beneath.Absent
}

// dissociate gives a repository of the agent's all that it borrows from places.
func (a *adopting) dissociate(places []Place) error {
	var bind []string
	for _, p := range places {
		bind = append(bind, p.Outer+"/objects", p.Shared()+"/objects")
		bind = append(bind, p.Inner()+"/objects", p.Outer+"/objects")
	}
	box := side{place: a.place, tools: a.tools, boxed: true, folder: a.made.At}
	script := prelude + inCommon + "g repack -a -d -q && rm -f \"$C/" + alternates + "\"\n"
	if err := os.MkdirAll(a.place.Outer+"/objects", 0o700); err != nil { // which a box has, too
		return err
	}
	defer os.RemoveAll(a.place.Outer)
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

// claiming prints a claim of an inner folder, to which it gives the user's objects.
func claiming(p Place) string {
	const next = "printf '\\0\\2\\0'\n"
	return prelude + fmt.Sprintf(`mkdir -p "$C/objects/info" && echo %s >"$C/%s" || exit 1
if [ -f "$C/shallow" ]; then head -c %d "$C/shallow"; fi
`, diag.Quote(p.Shared()+"/objects"), alternates, configLimit) +
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
	"core.precomposeunicode", "core.symlinks", "extensions.", "remote.", "branch.", "submodule.",
}

// tellInside tells which hooks and settings of a repository of the agent's the user's does not have.
func (l *live) tellInside(c claim) {
	list := c.hooks[:len(c.hooks)-1]
	for setting := range strings.SplitSeq(c.settings, "\x00") {
		name, _, _ := strings.Cut(setting, "\n")
		if name != "" && !hasAny(name, crossed...) && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	if len(list) > 0 {
		const most = 5
		l.remarks = append(l.remarks, Remark{
			About: path.Dir(l.place.Outer), Text: "it is yours now; inside only: " + diag.Some(list, most),
		})
	}
}
