package handover

import (
	"errors"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
)

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
	if !changes && err == nil && !again && beneath.IsSettled(newest(p).UnixNano(), seen.at.UnixNano()) {
		m.Inner, m.Outer = seen.inner, seen.outer
	}
	return changes, errors.Join(err, p.remember(m))
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
