package state_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/agent/state"
)

// TestTheScriptsThatSettingsNameAreThoseOfNow: of the same size and with the old time of their content, by another file
// in their place, or through a link that leads elsewhere.
func TestTheScriptsThatSettingsNameAreThoseOfNow(t *testing.T) {
	const before, after = `{"statusLine":{"command":"~/.claude/a.sh"}}`, `{"statusLine":{"command":"~/.claude/b.sh"}}`
	for name, change := range map[string]func(w world){
		"written": func(w world) { w.write("dots/one", after) },
		"replaced": func(w world) {
			w.write("new", after)
			must.Do(t, os.Rename(w.path("new"), w.path("dots/one")))
		},
		"led elsewhere": func(w world) {
			w.write("dots/two", after)
			must.Do(t, os.Remove(w.path(".claude/settings.json")))
			must.Do(t, os.Symlink(w.path("dots/two"), w.path(".claude/settings.json")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(".claude/a.sh", "")
			w.write(".claude/b.sh", "")
			w.write("dots/one", before)
			must.Do(t, os.Symlink(w.path("dots/one"), w.path(".claude/settings.json")))
			info, err := os.Stat(w.path("dots/one"))
			must.Do(t, err)
			for range 2 {
				if got := named(w.session(w.request())); !slices.Equal(got, []string{"a.sh"}) {
					t.Fatalf("before: %q", got)
				}
			}
			change(w)
			must.Do(t, os.Chtimes(w.path("dots/one"), info.ModTime(), info.ModTime()))
			if got := named(w.session(w.request())); !slices.Equal(got, []string{"b.sh"}) {
				t.Errorf("after: %q", got)
			}
		})
	}
}

// named are the files that enter because something names them.
func named(in state.Instance) (names []string) {
	for _, i := range in.Imports {
		if i.File {
			names = append(names, filepath.Base(i.Source))
		}
	}
	return names
}

// A session's end asks about what changed in it, so that the next launch need not read that; and about nothing else.
func TestTheEndOfASessionLooksAtWhatChanged(t *testing.T) {
	w := newWorld(t)
	w.write(".claude/settings.json", `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"tool"}]}]}}`)
	asked := 0
	req := w.request()
	req.Runs = func(string) string { asked++; return "" }
	w.session(req)
	time.Sleep(30 * time.Millisecond) // what was changed a moment ago is read again
	in := w.launch(req)
	asked = 0
	must.Do(t, in.Close())
	if asked > 0 {
		t.Errorf("asked %d times about files that nobody changed", asked)
	}
	in = w.launch(req)
	settings := rel(w, in.Dir) + "/.claude/settings.json"
	w.write(settings, w.read(settings)) // as Claude Code writes it
	must.Do(t, in.Close())
	record := w.path(rel(w, in.Dir) + "/record")
	before, err := os.Stat(record)
	must.Do(t, err)
	w.launch(req)
	after, err := os.Stat(record)
	must.Do(t, err)
	if !after.ModTime().Equal(before.ModTime()) {
		t.Error("the next launch made the file anew")
	}
}
