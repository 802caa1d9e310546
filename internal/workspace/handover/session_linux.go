package handover

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/watch"
)

// Session hands over between the places' two sides while the agent works. A nil Session does nothing.
type Session struct {
	places []*live
	wake   chan struct{}
	done   chan struct{}
	ended  sync.WaitGroup
}

// live is a place in a session.
type live struct {
	Request
	place        Place
	hidden, held func(at string) bool
	closed       bool             // git cannot read the outer one: nothing crosses
	remarks      []Remark         // of the last hand-over
	events       []Remark         // of all of them
	fault        error            // why the last one was not made
	silent       error            // of objects that did not come in time; nil: all did
	unwatched    error            // why nothing crosses while the session runs; nil: it does
	was          map[string]State // the checkouts when the session began
	tips         []string         // of the user's branches, then
	put          put
	settingsLeft bool // some settings of the agent's are to cross at the next end

	turn      sync.Mutex // for what follows, see [Session.Exclude]
	excluded  []string   // patterns
	written   int        // how many of them git inside has
	excluding bool       // the others are being written
	watch     *watch.Watch
	watched   []string
}

// Request is what a session begins with.
type Request struct {
	Places []Place
	Tools  Tools
	Hidden []string // paths on the host that the agent does not see; canonical
	Held   []string // those that are read-only inside
	Given  []string // folders that the agent may change; canonical
	Lasts  []string // all folders inside that outlast the session
	// Alone reports whether no other session lives at a path, or below it. nil: none does.
	Alone func(at string) bool
	// Crossed is called with what has crossed to a git folder of the user's; nil: nobody asks.
	Crossed func(outer string, changes []RefChange)
}

// Begin makes the inner folders that are missing, and brings both sides of each place together. It is called before the
// agent starts: what the agent then finds is what the user has.
func Begin(r Request) (*Session, error) {
	if len(r.Places) == 0 {
		return nil, nil
	}
	s := &Session{wake: make(chan struct{}, 1), done: make(chan struct{})}
	faults := make([]error, len(r.Places))
	var all sync.WaitGroup
	for n, p := range r.Places {
		l := r.live(p)
		s.places = append(s.places, l)
		all.Go(func() { faults[n] = l.begin() })
	}
	all.Wait()
	for n, err := range faults {
		if err != nil {
			return nil, diag.Wrap("give the agent a git folder of its own for "+r.Places[n].Outer, err,
				"see whether `git fsck` and `git status` work there; the agent's own is in "+r.Places[n].Folder)
		}
	}
	return s, nil
}

func (r Request) live(p Place) *live {
	return &live{Request: r, place: p, hidden: under(r.Hidden), held: under(r.Held)}
}

// under returns a function that reports whether a path lies at or below one of a list.
func under(list []string) func(at string) bool {
	return func(at string) bool {
		return slices.ContainsFunc(list, func(dir string) bool { return pathname.Below(at, dir) })
	}
}

func (l *live) inner() side { return innerOf(l.place, l.Tools) }

func (l *live) outer() side { return outerOf(l.place, l.Tools) }

// facts begins what a decision depends on.
func (l *live) facts() facts { return facts{hidden: l.hidden, held: l.held} }

// begin is [Begin] for one place. Of a repository that git cannot read, and that is not the project's own, the agent
// sees an empty folder.
func (l *live) begin() error {
	err := l.open()
	if err == nil || l.place.Own {
		return err
	}
	l.closed = true
	l.remarks = []Remark{{
		About: l.place.Outer, Text: "git cannot read it, and it is not inside: " + err.Error(),
	}}
	for _, rel := range append(l.place.points(), ".") {
		if err := os.MkdirAll(l.place.Inner()+"/"+rel, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// open makes the inner folder, and brings both sides together.
func (l *live) open() error {
	p := l.place
	if err := os.MkdirAll(l.outer().workTree(), 0o700); err != nil {
		return err
	}
	unlock, err := p.lock()
	if err != nil {
		return err
	}
	defer unlock()
	fresh, err := l.prepare()
	if errors.Is(err, errSilent) && !errors.As(err, &unfit{}) {
		return err // the user's, which does not answer another time either
	}
	if err != nil {
		first := err
		if fresh, err = l.prepare(); err != nil {
			return l.anew(first)
		}
	}
	f := l.facts()
	f.first, f.modules = true, len(p.Modules) > 0
	if fresh != nil {
		_, err = l.cross(fresh.memory, fresh.inner, fresh.outer, f, stamped{})
	} else {
		_, err = l.handOver(f)
	}
	if m, fault := p.recall(); fault == nil {
		l.was = m.Common.Trees
		l.tips = slices.Compact(slices.Sorted(maps.Values(m.Common.Refs)))
	}
	if err == nil || errors.Is(err, errInUse) {
		return nil // it comes while the session runs
	}
	if _, broken := l.inner().read(); broken == nil {
		l.fault = err // what the agent made does not cross; what the user has may not be there, which is said
		return nil
	}
	return l.anew(err)
}

// anew gives the agent another folder for one that it has broken, as an error says. The old one is kept. If it is not
// the agent's that is broken, but the user's, or no box can be made at all, nothing happens.
func (l *live) anew(err error) error {
	p := l.place
	if _, broken := l.outer().read(); broken != nil {
		return broken
	}
	if _, none := l.outer().contained().run("true\n", "", false); none != nil {
		return err
	}
	if err := p.forget(); err != nil {
		return err
	}
	text := "the agent's own git folder cannot be used any more: it is kept in " + p.Folder + "; there is a new one"
	l.events = append(l.events, Remark{About: p.Outer, Text: text, Once: true})
	_, err = l.prepare()
	return err
}

// begun is an inner folder that was just made, with what both sides hold.
type begun struct {
	memory       memory
	inner, outer Side
}

// prepare makes the inner folder if there is none, and what it lacks. Of one that it has made it returns what is in it,
// unless that has to be read.
func (l *live) prepare() (fresh *begun, err error) {
	p, id, isNew := l.place, l.place.identity(), false
	m, err := p.recall()
	_, missing := os.Lstat(p.Inner())
	if err == nil && missing != nil && m.From != "" && m.Identity == id { // an end was cut short
		missing = p.takeIn(m.From)
	}
	if err == nil && m.Lost && missing == nil {
		if inner, unread := l.inner().read(); unread == nil && !lost(m.Common, inner, facts{}) {
			m.Lost = false // it could not be read at that time
			err = p.remember(m)
		}
	}
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err == nil && (m.Identity != id || m.Lost), errors.Is(err, fs.ErrNotExist) && missing == nil:
		if err := p.forget(); err != nil {
			return nil, err
		}
		fallthrough
	case missing != nil:
		outside, isSame, err := l.create()
		if err != nil {
			return nil, err
		}
		m = memory{
			Identity: id, Common: outside, Settings: p.settings(), Named: map[string]string{}, Passed: p.Passed,
		}
		if inside, known := p.asMade(outside); isSame && known {
			fresh = &begun{m, inside, outside}
		}
		isNew = true
	default:
		if err := l.renewSettings(m); err != nil {
			return nil, err
		}
	}
	added := slices.ContainsFunc(p.Trees, func(t Tree) bool { _, had := m.Common.Trees[t.Rel]; return !had })
	added = added || !slices.Equal(m.Passed, p.Passed)
	if !added && m.Inner != "" && m.Inner == p.stamps(p.Inner()) && p.hasPoints() {
		return nil, nil // as it was left
	}
	if err = nil; fresh == nil {
		_, err = l.inner().run(prelude+p.preparations(), "", true)
	}
	if err == nil && !p.hasPoints() {
		err = errors.New("a link is in its place, or on the way to what is mounted there")
	}
	if err == nil && (isNew || added) { // without a memory it is made anew
		m.Passed = p.Passed
		err = p.remember(m)
	}
	return fresh, err
}

// create makes the inner folder, and returns what the user's side held just before. Where their git was at work
// meanwhile it makes it again: of what has moved from one file to another while both were copied, nothing may be there.
// isSame says that it has come to an end in which both sides are the same.
func (l *live) create() (outside Side, isSame bool, err error) {
	const most = 4
	p := l.place
	for n := 0; n < most && !isSame && err == nil; n++ {
		if n > 0 {
			err = os.RemoveAll(p.Inner())
		}
		was := p.stamps(p.Outer)
		if err == nil {
			outside, err = l.outer().read()
		}
		if err == nil {
			err = p.create(l.hidden)
		}
		isSame = p.stamps(p.Outer) == was
	}
	if err == nil && p.Branch != "" {
		err = l.putOnBranch(outside)
	}
	return outside, isSame, err
}

// lock keeps other claudeboxes from handing over in the place. It waits for them.
func (p Place) lock() (unlock func(), err error) {
	f, err := os.Open(p.Outer)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, os.NewSyscallError("flock", err)
	}
	return func() { f.Close() }, nil
}

// sync hands over until nothing is left to do, a few times at most: while both sides go on changing there is a next
// time.
func (l *live) sync(f facts) error {
	unlock, err := l.place.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return l.settle(f)
}

// settle is [live.sync] in a place that is locked.
func (l *live) settle(f facts) error {
	const most = 5
	for n := range most {
		changes, err := l.handOver(f)
		if err == nil && !changes {
			return nil
		}
		if err != nil && (!errors.Is(err, errInUse) || n == most-1) {
			return err
		}
		if err != nil {
			time.Sleep(time.Duration(n+1) * 20 * time.Millisecond)
		}
	}
	return nil
}

// handOver makes one hand-over, both ways, and reports whether anything changed. The place is locked.
func (l *live) handOver(f facts) (changes bool, err error) {
	p := l.place
	m, err := p.recall()
	if err != nil {
		return false, err
	}
	if m.Identity != p.identity() {
		return false, errElsewhere
	}
	seen := stamped{p.stamps(p.Inner()), p.stamps(p.Outer), time.Now()}
	if m.Inner == seen.inner && m.Outer == seen.outer && !f.final && !f.modules {
		return false, nil
	}
	in, out, err := l.readBoth()
	if errors.Is(err, errLost) {
		l.note([]Remark{{About: p.Outer, Text: lostText}})
		m.Lost = true
		return false, p.remember(m)
	}
	if err != nil {
		return false, err
	}
	return l.cross(m, in, out, f, seen)
}

// errElsewhere is returned where another git folder of the user's has come to the place since the session began.
var errElsewhere = errors.New("another repository is in its place now")

// stamped are the stamps of both sides when they were read.
type stamped struct {
	inner, outer string
	at           time.Time
}

// cross is [live.handOver] of what was read of both sides.
func (l *live) cross(m memory, in, out Side, f facts, seen stamped) (changes bool, err error) {
	p := l.place
	f.put = l.put
	if f, err = l.judge(m.Common, in, out, f); err != nil {
		return false, err
	}
	if f.intends, err = l.intends(m.Common, in, out); err != nil {
		return false, err
	}
	if f.had, err = l.had(m.Common, in, out); err != nil {
		return false, err
	}
	d := decide(p, m.Common, in, out, m.Named, f)
	carried := false
	if !d.lost {
		var remarks []Remark
		carried, remarks = l.carry(&m)
		d.remarks = append(d.remarks, remarks...)
	}
	l.note(d.remarks)
	if d.lost {
		m.Lost = true
		return false, p.remember(m)
	}
	again := len(f.refused) > 0 // even if nothing changes: there may be room then
	if len(d.out.Refs) > 0 || !f.first {
		if err := l.carryContents(); err != nil {
			again, l.remarks = true, append(l.remarks, Remark{About: p.Outer, Text: err.Error()})
		}
	}
	// The user's side first: if this ends in the middle, what crossed is equal on both sides, and counts as common.
	if err := l.outer().apply(d.out, "claudebox: from the session"); err != nil {
		return false, err
	}
	l.put = l.put.clone()
	maps.Copy(l.put.out, d.put.out)
	if err := l.whole(m.Common, in, out, f); err != nil {
		return false, err
	}
	if l.Crossed != nil && len(d.out.Refs) > 0 {
		l.Crossed(p.Outer, d.out.Refs)
	}
	err = l.inner().apply(d.in, "claudebox: from outside")
	if err == nil {
		l.put = d.put
	} else { // it crosses the next time
		d.next = m.Common
	}
	m.Common, m.Waiting = d.next, len(l.remarks) > 0
	m.Inner, m.Outer = "", ""
	changes = carried || !d.out.none() || !d.in.none()
	if !changes && err == nil && !again && seen.at.Sub(newest(p)) > 50*time.Millisecond {
		m.Inner, m.Outer = seen.inner, seen.outer
	}
	return changes, errors.Join(err, p.remember(m))
}

// Listed returns the paths in the commits at the tips that the user had when the session began, if wanted says so of a
// path in its checkout. It asks git, which takes a second in a large repository. What git has at two paths alike is
// listed once.
func (s *Session) Listed(wanted func(rel string) bool) (list []string) {
	if s == nil {
		return nil
	}
	for _, l := range s.places {
		if len(l.tips) == 0 || l.closed {
			continue
		}
		// what git does not say is not known to be the user's
		answer, _ := l.outer().run(prelude+inCommon+"g rev-list --objects --no-walk --stdin", ended(l.tips), false)
		for _, line := range lines(string(answer)) {
			_, rel, named := strings.Cut(line, " ")
			if !named || rel == "" || !wanted(rel) {
				continue
			}
			for _, t := range l.place.Trees {
				list = append(list, t.Path+"/"+rel)
			}
		}
	}
	return list
}

// note keeps the remarks of a hand-over: what waits as long as it does, what has happened for good.
func (l *live) note(remarks []Remark) {
	l.remarks = nil
	for _, r := range remarks {
		switch {
		case !r.Once:
			l.remarks = append(l.remarks, r)
		case !slices.Contains(l.events, r):
			l.events = append(l.events, r)
		}
	}
}

// whole makes sure that all that has crossed is there.
func (l *live) whole(base, in, out Side, f facts) error {
	want, have := l.wanted(base, in, out)
	want = slices.DeleteFunc(want, func(object string) bool { return f.refused[object] != "" })
	return makeWhole(l.inner(), l.outer(), want, have)
}

// makeWhole fetches what has crossed once more, if it is not there: the user may have pruned objects a moment before a
// reference to them was written. have is what the user has of that history.
func makeWhole(inner, outer side, want, have []string) error {
	if outer.isWhole(want, have) == nil {
		return nil
	}
	if err := fetch(inner, outer, want, have); err != nil {
		return err
	}
	if outer.isWhole(want, have) != nil {
		return errors.New("objects that had crossed are gone again")
	}
	return nil
}

// newest is when something of a place's checkouts was changed last. A change within the same tick of the clock could
// not be told from it.
func newest(p Place) (last time.Time) {
	for _, root := range []string{p.Inner(), p.Outer} {
		for _, t := range p.treesOf(root == p.Outer) {
			for _, name := range []string{"", "/HEAD", "/index"} {
				if info, err := os.Lstat(root + "/" + t.Rel + name); err == nil && info.ModTime().After(last) {
					last = info.ModTime()
				}
			}
		}
	}
	return last
}

// readBoth reads both sides at once.
func (l *live) readBoth() (in, out Side, err error) {
	var ofIn, ofOut error
	var both sync.WaitGroup
	both.Go(func() { in, ofIn = l.inner().read() })
	both.Go(func() { out, ofOut = l.outer().read() })
	both.Wait()
	return in, out, errors.Join(ofOut, ofIn)
}

// wanted lists the objects that are new inside and may cross, and what the user has of that history.
func (l *live) wanted(base, in, out Side) (want, have []string) {
	want, have = newTips(l.place, base, in, out)
	if l.place.Branch != "" {
		in.Stash = nil // it stays inside
	}
	for _, t := range l.place.treesOf(true) {
		known := map[string]bool{}
		was, is, own := base.Trees[t.Rel].Index, in.Trees[t.Rel].Index, out.Trees[t.Rel].Index
		if is == own {
			continue
		}
		walk(was.entries(), is.entries(), own.entries(), func(at, was, inside, outside string) {
			if inside == was || inside == outside || l.hidden(t.Path+"/"+at) {
				return
			}
			for _, object := range (Entry{at, inside}).objects() {
				if !known[object] {
					known[object] = true
					want = append(want, object)
				}
			}
		})
		for _, file := range stateFiles {
			if file.objects {
				want = append(want, lines(in.Trees[t.Rel].Files[file.name])...)
			}
		}
	}
	for _, s := range in.Stash {
		if !slices.Contains(base.Stash, s) && !slices.Contains(out.Stash, s) {
			want = append(want, s.Object)
		}
	}
	slices.Sort(want)
	return slices.Compact(want), have
}

// judge brings the objects that are new inside to the user's side, and asks there what they are.
func (l *live) judge(base, in, out Side, f facts) (facts, error) {
	want, have := l.wanted(base, in, out)
	missing := want
	if len(have) > 0 {
		var err error
		if missing, err = l.outer().missing(want); err != nil {
			return f, err
		}
	}
	f.refused, l.silent = bring(l.inner(), l.outer(), missing, have)
	return gather(l.outer(), base, in, out, f)
}

// bring fetches objects, and returns those that the user's git does not take, and why. Where some did not come in time
// (silent), the others are not waited for.
func bring(inner, outer side, objects, have []string) (refused map[string]string, silent error) {
	refused = sift(objects, func(some []string) error {
		if silent != nil {
			return silent
		}
		err := fetch(inner, outer, some, have)
		if errors.Is(err, errSilent) {
			silent = err
		}
		return err
	})
	return refused, silent
}

// missing returns those of some objects that a side does not have.
func (s side) missing(want []string) (list []string, err error) {
	if len(want) == 0 {
		return nil, nil
	}
	answer, err := s.run(prelude+inCommon+"g cat-file --batch-check='%(objectname)'", ended(want), false)
	for _, line := range lines(string(answer)) {
		if object := line[:max(0, len(line)-len(" missing"))]; line == object+" missing" && isObject(object) {
			list = append(list, object)
		}
	}
	return list, err
}

// Follow begins to hand over what changes. It is called when the agent has been started.
func (s *Session) Follow() {
	if s == nil {
		return
	}
	for _, l := range s.places {
		l.follow(s.wakeUp)
	}
	s.ended.Go(s.serve)
}

func (s *Session) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// written are the events after which something may have to cross.
const written = unix.IN_CLOSE_WRITE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_CREATE | unix.IN_DELETE |
	unix.IN_DONT_FOLLOW

// follow watches both git folders of the place, and the folders of their references.
func (l *live) follow(wake func()) {
	p := l.place
	var list []string
	for _, root := range []string{p.Inner(), p.Outer} {
		list = append(list, root)
		for _, t := range p.Trees {
			if t.Rel != "." {
				list = append(list, root+"/"+t.Rel)
			}
		}
		list = append(list, folders(root)...)
	}
	if slices.Equal(list, l.watched) {
		return
	}
	l.watch.Close()
	l.watched = list
	l.watch = watch.Start(watch.Request{
		Folders: func() []string { return list },
		Events:  written,
		See:     func(string) { wake() },
		Failed:  func(_ string, err error) { l.unwatched = err },
	})
}

const (
	// quiet is how long nothing may change before what has changed is handed over.
	quiet = 20 * time.Millisecond
	// patience is how long a hand-over waits for that.
	patience = 400 * time.Millisecond
)

// serve hands over whenever something has changed, and rests as long as that took.
func (s *Session) serve() {
	for {
		select {
		case <-s.done:
			return
		case <-s.wake:
		}
		for began := time.Now(); time.Since(began) < patience; {
			select {
			case <-s.done:
				return
			case <-s.wake:
				continue
			case <-time.After(quiet):
			}
			break
		}
		began := time.Now()
		for _, l := range s.places {
			if l.closed {
				continue
			}
			l.fault = l.sync(l.facts())
			if errors.Is(l.fault, errInUse) {
				s.wakeUp()
			}
			l.follow(s.wakeUp)
		}
		select {
		case <-s.done:
			return
		case <-time.After(time.Since(began)):
		}
	}
}

// End hands over for the last time, and returns what did not cross as it stands. Nothing may run inside any more, and
// repositories that the agent made in the working tree were judged (final), or another session may still make some.
func (s *Session) End(final bool) (list []Remark) {
	if s == nil {
		return nil
	}
	s.stop()
	for _, l := range s.places {
		before := l.remarks
		if !l.closed {
			l.fault = l.finish(final)
		}
		if l.unwatched != nil {
			before = append(before, Remark{
				About: l.place.Outer, Text: "nothing crossed before the end of the session: " + l.unwatched.Error(),
			})
		}
		if l.fault != nil {
			l.remarks = append(before, Remark{
				About: l.place.Outer, Text: "what the agent did last in its own git folder did not cross: " +
					l.fault.Error() + "; it is kept, and the next session tries again" +
					l.place.spaceRemedy(l.fault.Error()),
			})
		}
		list = append(list, l.told(append(l.events, l.remarks...))...)
	}
	return list
}

// Cancel ends a session whose agent was not started: nothing has changed inside. It returns what has happened before.
func (s *Session) Cancel() (list []Remark) {
	if s == nil {
		return nil
	}
	s.stop()
	for _, l := range s.places {
		list = append(list, l.told(l.events)...)
	}
	return list
}

// stop ends what hands over while the agent works.
func (s *Session) stop() {
	close(s.done)
	s.ended.Wait()
	for _, l := range s.places {
		l.watch.Close()
	}
}

// finish hands over for the last time in a session, adopts what may be, and takes settings.
func (l *live) finish(final bool) error {
	if l.isUntouched() {
		return nil
	}
	unlock, err := l.place.lock()
	if err != nil {
		return err
	}
	defer unlock()
	f := l.facts()
	f.modules = len(l.place.Modules) > 0
	err = l.settle(f)
	f.modules = false
	f.final = final && l.place.Branch == "" // where repositories of the agent's do not cross
	added := &additions{}
	if err == nil && f.final {
		var made []byte
		if made, err = l.inner().run(prelude+"top=\n"+listMade, "", false); err == nil {
			added = l.additionsTo(l.place, string(made))
			added.adopt(false) // before the commits cross that name them
		}
	}
	if err == nil && len(l.excluded) > 0 {
		_, err = l.inner().run(prelude+unexclude, "", true)
	}
	if err == nil {
		err = l.settle(f)
	}
	if err == nil && added.adopt(true) > 0 {
		l.place = added.place
		err = l.settle(f)
	}
	if err == nil {
		err = l.takeSettings()
	}
	l.remarks = slices.Concat(l.remarks, added.remarks, l.begunInside())
	if err == nil && final && !l.settingsLeft {
		err = l.noteEnd()
	}
	return err
}

// noteEnd notes that there is nothing left to do while both sides stay as they are. The place is locked.
func (l *live) noteEnd() error {
	m, err := l.place.recall()
	if err != nil || m.Ended == m.Inner {
		return err
	}
	m.Ended = m.Inner
	return l.place.remember(m)
}

// isUntouched reports whether both sides are as the last hand-over left them, and nothing waits.
func (l *live) isUntouched() bool {
	p := l.place
	m, err := p.recall()
	return err == nil && len(p.Modules) == 0 && !m.Waiting && m.Ended != "" && m.Ended == p.stamps(p.Inner()) &&
		m.Outer == p.stamps(p.Outer)
}

// begunInside returns remarks on operations of git that the agent began and that go on outside.
func (l *live) begunInside() (remarks []Remark) {
	m, err := l.place.recall()
	if err != nil {
		return nil
	}
	for _, t := range l.place.Trees {
		for _, of := range []struct{ file, what string }{
			{"MERGE_HEAD", "merge"}, {"CHERRY_PICK_HEAD", "cherry-pick"}, {"REVERT_HEAD", "revert"},
		} {
			if m.Common.Trees[t.Rel].Files[of.file] != "" && l.was[t.Rel].Files[of.file] == "" {
				text := "a " + of.what + " is under way since this session: `git status` shows it"
				remarks = append(remarks, Remark{About: t.Path, Text: text})
			}
		}
	}
	return remarks
}

// line is a remark as a line for people; more says that it is one of several of the same text.
func (r Remark) line(more string) string {
	about := strings.TrimPrefix(strings.TrimPrefix(r.About, "refs/"), "heads/")
	if more != "" {
		about += more
	} else if r.In != "" {
		about += " in " + r.In
	}
	return fmt.Sprintf("git, %s: %s", diag.Visible(about), diag.Visible(r.Text))
}

// in says in which repository something is, in remarks that do not.
func in(folder string, list []Remark) []Remark {
	for i, r := range list {
		if r.In == "" && !strings.HasPrefix(r.About, "/") {
			list[i].In = folder
		}
	}
	return list
}

// told returns what is told of a place.
func (l *live) told(list []Remark) []Remark {
	if l.place.Own {
		return list
	}
	return in(l.place.Trees[0].Path, list)
}

// Lines returns remarks as lines for people. Of many that say the same only the first are told, and counted: an agent
// can make any number of branches.
func Lines(list []Remark) (lines []string) {
	const most = 5
	same := map[string]int{}
	for _, r := range list {
		same[r.Text]++
	}
	told := map[string]int{}
	for _, r := range list {
		switch told[r.Text]++; {
		case told[r.Text] < most || same[r.Text] == most && told[r.Text] == most:
			lines = append(lines, r.line(""))
		case told[r.Text] == most:
			lines = append(lines, r.line(fmt.Sprintf(" and %d more", same[r.Text]-most)))
		}
	}
	return lines
}
