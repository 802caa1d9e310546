package live

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/network/helper"
)

func TestASessionIsListedWhileItRuns(t *testing.T) {
	home := filepath.Join(t.TempDir(), strings.Repeat("long", 40)) // longer than the address of a socket may be
	must.Do(t, os.Mkdir(home, 0o700))
	want := func(when string, tiers ...string) []Info {
		t.Helper()
		list, silent, err := List(home)
		if len(silent) != 0 && when != "one refuses, and one runs" {
			t.Errorf("%s: %v", when, silent)
		}
		var got []string
		for _, one := range list {
			got = append(got, one.Tier)
		}
		if err != nil || strings.Join(got, " ") != strings.Join(tiers, " ") {
			t.Errorf("%s: %v, %v", when, list, err)
		}
		return list
	}
	want("before")
	var asked Question
	s, err := Serve(home, Info{Tier: "allow"}, func(q Question) Answer {
		asked = q
		return Answer{Error: "no"}
	})
	must.Do(t, err)
	silent := func(q Question) Answer { return Answer{} }
	other, err := Serve(home, Info{Tier: "none"}, silent)
	must.Do(t, err)
	list := want("one refuses, and one runs", "none")
	if _, err := Ask(home, list[0].ID, Question{}); err != nil {
		t.Error(err)
	}
	_, err = Ask(home, filepath.Base(s.file), Question{Open: &helper.Opening{Allow: []string{"a.test"}}})
	if err == nil || err.Error() != "no" || asked.Open == nil || asked.Open.Allow[0] != "a.test" {
		t.Errorf("asked %+v: %v", asked, err)
	}
	s.Close()
	other.listener.Close() // as it ends when it is killed
	want("after")
	if left, _ := os.ReadDir(filepath.Join(home, folder)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	for _, id := range []string{list[0].ID, "", ".", "..", "../x", ".new-x"} {
		if _, err := Ask(home, id, Question{}); !errors.Is(err, ErrGone) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// Who may enter the folder could open a sandbox.
func TestAFolderThatOthersMayEnterIsRefused(t *testing.T) {
	for name, prepare := range map[string]func(at string) error{
		"others may enter it": func(at string) error { return errors.Join(os.Mkdir(at, 0o700), os.Chmod(at, 0o711)) },
		"it is a link":        func(at string) error { return os.Symlink(t.TempDir(), at) },
		"it is a file":        func(at string) error { return os.WriteFile(at, nil, 0o600) },
	} {
		home := t.TempDir()
		must.Do(t, prepare(filepath.Join(home, folder)))
		if _, err := Serve(home, Info{}, nil); err == nil {
			t.Errorf("%s: it serves", name)
		}
		if _, _, err := List(home); err == nil {
			t.Errorf("%s: it lists", name)
		}
	}
}

// An agent's names are as long as a path can be, and of any bytes: who began to watch late read no answer.
func TestLongNamesHideNoEvents(t *testing.T) {
	home := t.TempDir()
	var events Events
	for n := range burst {
		for _, kind := range []Kind{Held, Commits, Used, Stopped, Reached} {
			events.Add(Event{Kind: kind, What: fmt.Sprint(n, strings.Repeat("/\xff", 2000)), Why: strings.Repeat("\xff", 1<<20)})
		}
	}
	events.End()
	s, err := Serve(home, Info{}, func(q Question) Answer { return Answer{Events: events.After(*q.After, func() {})} })
	must.Do(t, err)
	defer s.Close()
	for last, kind := 0, Kind(""); kind != Ended; {
		a, err := Ask(home, s.ID(), Question{After: &last})
		if err != nil || len(a.Events) == 0 || a.Events[0].N != last+1 {
			t.Fatalf("after %d: %d events, %v", last, len(a.Events), err)
		}
		last, kind = a.Events[len(a.Events)-1].N, a.Events[len(a.Events)-1].Kind
	}
}
