package live

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// all are the events so far, as kind, what and count.
func all(l *Events, after int) (list []string) {
	for _, e := range l.After(after, func() {}) {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%d %s %s %d", e.N, e.Kind, e.What, e.Count)))
	}
	return list
}

func wantEvents(t *testing.T, when string, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n%s\nwant\n%s", when, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestANameThatExistsInsideAloneIsToldByTheUsersOwn(t *testing.T) {
	l := Events{Shown: strings.NewReplacer("a.gateway.internal:443", "127.0.0.1:4000", "a.gateway.internal", "127.0.0.1:4000")}
	l.Add(Event{Kind: Reached, What: "a.gateway.internal:443"})
	l.Add(Event{Kind: Used, What: "KEY", Why: "a.gateway.internal"})
	wantEvents(t, "told", all(&l, 0), "1 reached 127.0.0.1:4000 0", "2 used KEY 0")
	if got := l.After(1, func() {})[0].Why; got != "127.0.0.1:4000" {
		t.Errorf("the key went to %s", got)
	}
}

func TestWhatHappensAgainIsToldWhenItsCountHasDoubled(t *testing.T) {
	var l Events
	for range 9 {
		l.Add(Event{Kind: Held, What: "/p/.envrc"})
	}
	for _, count := range []int{1, 1, 5, 6, 9, 10} {
		l.Add(Event{Kind: Refused, What: "a.test", Count: count})
	}
	wantEvents(t, "at first", all(&l, 0),
		"1 held /p/.envrc 0", "2 held /p/.envrc 2", "3 held /p/.envrc 4", "4 held /p/.envrc 8",
		"5 refused a.test 0", "6 refused a.test 5", "7 refused a.test 10")
}

// An agent can ask for any number of names: a person reads the first ones, and how many more there were.
func TestAFloodStaysReadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Events
		l.Add(Event{Kind: Reached, What: "before.test"})
		for n := range 10 * mostKnown {
			l.Add(Event{Kind: Refused, What: fmt.Sprintf("x%d.test", n)})
		}
		l.Add(Event{Kind: Reached, What: "after.test"})
		list := all(&l, 0)
		if len(list) != 1+burst+1+1 || !strings.HasPrefix(list[len(list)-1], "23 more refused ") {
			t.Errorf("%d events: %q", len(list), list)
		}
		if n := len(l.kinds[Refused].known); n > mostKnown || len(l.list) > mostEvents {
			t.Errorf("%d names and %d events are remembered", n, len(l.list))
		}
		time.Sleep(time.Hour)
		l.Add(Event{Kind: Held, What: "later"})
		wantEvents(t, "an hour later", all(&l, len(list)), "24 held later 0")
	})
}

// Who asks hears of it at once, and of the end.
func TestWhoWaitsIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Events
		for _, do := range []func(){func() { l.Add(Event{Kind: Held, What: "x"}) }, l.End} {
			began := time.Now()
			go func() {
				time.Sleep(time.Millisecond)
				do()
			}()
			if got := all(&l, l.count); len(got) != 1 || time.Since(began) != time.Millisecond {
				t.Errorf("after %v: %q", time.Since(began), got)
			}
		}
		l.End()
		began := time.Now()
		if got := all(&l, 2); len(got) != 0 || time.Since(began) != 0 {
			t.Errorf("of a session that has ended: after %v, %q", time.Since(began), got)
		}
		var quiet Events
		if got := all(&quiet, 0); len(got) != 0 || time.Since(began) != longest {
			t.Errorf("of a quiet one: after %v, %q", time.Since(began), got)
		}
	})
}
