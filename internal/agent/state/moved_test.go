package state_test

import (
	"os"
	"path/filepath"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/agent/agenthome"
	"claudebox/internal/agent/state"
)

// kept makes the instance of a project, as a launch does.
func (w world) kept(root string) state.Instance {
	w.t.Helper()
	req := w.request()
	req.Root = root
	return w.session(req)
}

func (w world) put(file, content string) {
	w.t.Helper()
	must.Write(w.t, file, content)
}

// Of D29: a project that was moved began with an empty history, and nothing said where the old one is.
func TestWhatWasKeptForAMovedProjectComesAlong(t *testing.T) {
	for name, tc := range map[string]struct {
		to    string // where the project goes
		copy  bool   // to another file system, as it seems: the folder there is another one
		began bool   // the project has an instance of its new place already
		found bool
	}{
		"renamed":                       {to: "a/named", found: true},
		"in another folder":             {to: "b/old", found: true},
		"copied, and removed":           {to: "b/old", copy: true, found: true},
		"one that has begun":            {to: "a/named", began: true},
		"another project of other name": {to: "b/other", copy: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			home, old, now := w.request().Home, w.home+"/a/old", filepath.Join(w.home, tc.to)
			for _, dir := range []string{old, w.home + "/b"} {
				must.Do(t, os.MkdirAll(dir, 0o700))
			}
			first := w.kept(old)
			projects := first.Dir + "/.claude/projects/"
			w.put(projects+agenthome.Conversations(old)+"/1.jsonl", "one")
			w.put(projects+agenthome.Conversations(old)+"-sub/2.jsonl", "two")
			w.put(projects+"-another/3.jsonl", "three")
			w.put(first.Dir+"/.claude/history.jsonl", `{"display":"x","project":"`+old+`"}`+"\n"+`{"display":"y","project":"/p"}`+"\n")
			if id, _ := state.Moved(home, now); id != "" {
				t.Fatalf("before it was moved: %s", id)
			}
			if tc.copy {
				must.Do(t, os.MkdirAll(now, 0o700))
				must.Do(t, os.RemoveAll(old))
			} else {
				must.Do(t, os.Rename(old, now))
			}
			if tc.began {
				w.put(w.kept(now).Dir+"/.claude/projects/"+agenthome.Conversations(now)+"/4.jsonl", "four")
			}
			id, from := state.Moved(home, now)
			if tc.found != (id == first.ID && from == old) {
				t.Errorf("found %s of %s", id, from)
			}
			got, err := state.Move(home, first.ID, now)
			if err != nil || got != old {
				t.Fatalf("%s, %v", got, err)
			}
			at := filepath.Join(home, "instances", state.ID(now))
			projects = at + "/.claude/projects/"
			want := map[string]string{
				projects + agenthome.Conversations(now) + "/1.jsonl": "one", projects + agenthome.Conversations(now) + "-sub/2.jsonl": "two",
				projects + "-another/3.jsonl": "three",
				at + "/.claude/history.jsonl": `{"display":"x","project":"` + now + `"}` + "\n" + `{"display":"y","project":"/p"}` + "\n",
			}
			if tc.began {
				want[projects+agenthome.Conversations(now)+"/4.jsonl"] = "four"
			}
			for file, text := range want {
				if content, err := os.ReadFile(file); err != nil || string(content) != text {
					t.Errorf("%s: %q, %v; want %q", file, content, err, text)
				}
			}
			if list, notes, err := state.List(home); err != nil || len(list) != 1 || len(notes) > 0 || list[0].Root != now || list[0].Gone {
				t.Errorf("kept: %+v, %q, %v", list, notes, err)
			}
			if again := w.kept(now); again.Dir != at {
				t.Errorf("a launch there uses %s", again.Dir)
			}
		})
	}
}

func TestNoInstanceOfAProjectThatIsThereIsMoved(t *testing.T) {
	w := newWorld(t)
	home := w.request().Home
	for _, dir := range []string{w.home + "/a/p", w.home + "/b/p"} {
		must.Do(t, os.MkdirAll(dir, 0o700))
	}
	first := w.kept(w.home + "/a/p")
	if id, _ := state.Moved(home, w.home+"/b/p"); id != "" {
		t.Errorf("found %s", id)
	}
	for _, id := range []string{first.ID, "../instances/" + first.ID, "", "shared"} {
		if _, err := state.Move(home, id, w.home+"/b/p"); err == nil {
			t.Errorf("%q was moved", id)
		}
	}
}
