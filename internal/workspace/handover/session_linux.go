package handover

import (
	"errors"
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

	excluded exclusions
	watch    *watch.Watch
	watched  []string
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
	return func(at string) bool { return pathname.BelowAny(at, list) }
}

func (l *live) inner() side { return innerOf(l.place, l.Tools) }

func (l *live) outer() side { return outerOf(l.place, l.Tools) }

// facts begins what a decision depends on.
func (l *live) facts() facts { return facts{hidden: l.hidden, held: l.held} }

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
		list = append(list, p.folders(root)...)
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
	if err == nil && l.excluded.any() {
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

// told returns what is told of a place.
func (l *live) told(list []Remark) []Remark {
	if l.place.Own {
		return list
	}
	return in(l.place.Trees[0].Path, list)
}
