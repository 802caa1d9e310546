package handover

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
)

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
