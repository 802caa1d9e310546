package live

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf16"
)

// Event is something that happened in a session. Its texts may be the agent's: who shows them makes them visible.
type Event struct {
	N       int       `json:"n"` // counts from 1
	Time    time.Time `json:"time"`
	Session string    `json:"session,omitempty"`
	Kind    Kind      `json:"event"`
	What    string    `json:"what,omitempty"`  // a host, a name, a secret's name
	Why     string    `json:"why,omitempty"`   // more of it
	Count   int       `json:"count,omitempty"` // how often it happened so far, if more than once
	Host    string    `json:"host,omitempty"`  // as `claudebox allow-host` takes it; empty: it would not help
}

// Kind says what happened.
type Kind string

// The kinds of events.
const (
	Refused Kind = "refused" // a connection was
	Reached Kind = "reached" // a host was, for the first time
	Allowed Kind = "allowed" // the user let the session reach more
	Commits Kind = "commits" // crossed to the user's git folder
	Held    Kind = "held"    // a name is held back
	Used    Kind = "used"    // a secret was
	Stopped Kind = "stopped" // a secret was not given where the agent sent its placeholder
	More    Kind = "more"    // of one kind, that are not listed
	Ended   Kind = "ended"   // the session
)

// ASCII returns JSON with all but ASCII escaped: a terminal obeys some of the rest.
func ASCII(text []byte) []byte {
	var b []byte
	for _, r := range string(text) {
		switch {
		case r < 0x7f:
			b = append(b, byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return b
}

// Bounds of what an agent can make a session remember, and a person read.
const (
	mostEvents = 1000
	mostKnown  = 2000 // of one kind
	burst      = 20   // events of one kind at once
	perSecond  = 2    // and after that
	sumEvery   = 5 * time.Second
	mostText   = 5000    // bytes of a text: no path is longer
	mostAtOnce = 1 << 19 // bytes of the events in an answer, about
)

// Events are those of one session, as a person can read them: what happens again and again is told when its count has
// doubled, and of a flood only the number. The zero value is ready. A nil one forgets all.
type Events struct {
	// Shown has the user's own words for names that exist inside alone; nil: there are none.
	Shown *strings.Replacer

	mu    sync.Mutex
	list  []Event
	count int // of all, also those that are not in list any more
	kinds map[Kind]*flow
	ended bool
	woken chan struct{} // closed at the next event
}

// flow is what is known of the events of one kind: a flood of one hides no other.
type flow struct {
	known  map[[2]string]*tally // by what and why
	room   float64              // for so many events, when it was counted
	since  time.Time
	beyond int       // that were not listed
	summed time.Time // when their number was told
}

// tally is how often something happened, and how often it was told to have.
type tally struct{ times, told int }

// InWords returns a text in the user's own words, see [Events.Shown].
func (l *Events) InWords(text string) string {
	if l == nil || l.Shown == nil {
		return text
	}
	return l.Shown.Replace(text)
}

// Add notes an event that has happened e.Count times by now; 0: once more.
func (l *Events) Add(e Event) {
	if l == nil {
		return
	}
	e.What, e.Why = l.InWords(e.What), l.InWords(e.Why)
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.kinds[e.Kind]
	if of == nil {
		of = &flow{known: map[[2]string]*tally{}, room: burst, since: time.Now()}
		if l.kinds == nil {
			l.kinds = map[Kind]*flow{}
		}
		l.kinds[e.Kind] = of
	}
	key := [2]string{e.What, e.Why}
	t := of.known[key]
	if t == nil && len(of.known) >= mostKnown {
		of.beyond++
		return
	}
	if t == nil {
		t = &tally{}
		of.known[key] = t
	}
	t.times++
	if e.Count != 0 {
		t.times = e.Count
	}
	if t.told > 0 && t.times < 2*t.told {
		return
	}
	t.told = t.times
	if !of.take() {
		of.beyond++
		return
	}
	e.Count = t.times
	if e.Count == 1 {
		e.Count = 0
	}
	l.add(e)
}

// take reports whether one more event may be told now.
func (f *flow) take() bool {
	now := time.Now()
	f.room = min(burst, f.room+now.Sub(f.since).Seconds()*perSecond)
	f.since = now
	if f.room < 1 {
		return false
	}
	f.room--
	return true
}

// add puts an event into the list. It is called with the lock held.
func (l *Events) add(e Event) {
	l.count++
	e.What, e.Why = e.What[:min(len(e.What), mostText)], e.Why[:min(len(e.Why), mostText)]
	e.N, e.Time = l.count, time.Now()
	l.list = append(l.list, e)
	if len(l.list) > mostEvents {
		l.list = slices.Clone(l.list[len(l.list)-mostEvents/2:])
	}
	if l.woken != nil {
		close(l.woken)
		l.woken = nil
	}
}

// told notes the number of the events that were not listed, every few seconds, and at last.
func (l *Events) told(last bool) {
	for _, k := range slices.Sorted(maps.Keys(l.kinds)) {
		of := l.kinds[k]
		if of.beyond > 0 && (last || time.Since(of.summed) > sumEvery) {
			l.add(Event{Kind: More, What: string(k), Count: of.beyond})
			of.beyond, of.summed = 0, time.Now()
		}
	}
}

// End notes that the session has ended. A nil l is that of a session that only rehearses: there is nobody to tell.
func (l *Events) End() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.told(true)
		l.ended = true
		l.add(Event{Kind: Ended})
	}
}

// After waits until there are events after the one with number n, and returns as many as an answer holds. refresh is
// called before each look, as some events are only known to who asks for them. It waits for two seconds at most.
func (l *Events) After(n int, refresh func()) []Event {
	for deadline := time.Now().Add(longest); ; {
		refresh()
		l.mu.Lock()
		l.told(false)
		at, _ := slices.BinarySearchFunc(l.list, n+1, func(e Event, n int) int { return cmp.Compare(e.N, n) })
		list := slices.Clone(fitting(l.list[at:]))
		if l.woken == nil {
			l.woken = make(chan struct{})
		}
		woken, ended := l.woken, l.ended
		l.mu.Unlock()
		wait := min(look, time.Until(deadline))
		if len(list) > 0 || ended || wait <= 0 {
			return list
		}
		select {
		case <-woken:
		case <-time.After(wait):
		}
	}
}

// fitting returns the first events, as many as an answer holds. JSON has six bytes for what is no text.
func fitting(list []Event) []Event {
	const others, escaped = 500, 6
	room := mostAtOnce
	for n, e := range list {
		if room -= others + escaped*(len(e.What)+len(e.Why)); room < 0 {
			return list[:n]
		}
	}
	return list
}

const (
	longest = 2 * time.Second
	look    = 300 * time.Millisecond // how often After looks, while a person waits for events
)
