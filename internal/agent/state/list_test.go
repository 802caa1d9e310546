package state_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/internal/agent/agenthome"
	"claudebox/internal/agent/state"
)

// shelf is a user with a home and some projects.
type shelf struct {
	t    *testing.T
	home string
}

func newShelf(t *testing.T) shelf {
	t.Helper()
	return shelf{t, must.Folder(t)}
}

func (w shelf) claudebox() string { return filepath.Join(w.home, ".claudebox") }

// launch starts a session in a project, which it makes.
func (w shelf) launch(project string) state.Instance {
	w.t.Helper()
	root := filepath.Join(w.home, project)
	must.Do(w.t, os.MkdirAll(root, 0o700))
	in, err := state.Look(state.Request{
		Request: agenthome.Request{Home: w.claudebox(), UserHome: w.home, Trusted: []string{root}},
		UID:     os.Getuid(), Kind: state.Project, Root: root,
	})
	must.Do(w.t, err)
	must.Do(w.t, in.Prepare())
	return in
}

func (w shelf) session(project string) state.Instance {
	w.t.Helper()
	in := w.launch(project)
	must.Do(w.t, in.Close())
	return in
}

func (w shelf) list() (map[string]state.Kept, []string) {
	w.t.Helper()
	list, notes, err := state.List(w.claudebox())
	must.Do(w.t, err)
	byRoot := map[string]state.Kept{}
	for _, in := range list {
		byRoot[strings.TrimPrefix(in.Root, w.home+"/")] = in
	}
	return byRoot, notes
}

func TestListTellsProjectUseAndSize(t *testing.T) {
	w := newShelf(t)
	if list, notes := w.list(); len(list)+len(notes) != 0 {
		t.Errorf("there is %v, %q", list, notes)
	}
	live := w.launch("live")
	defer live.Close()
	w.session("gone")
	must.Do(t, os.Remove(w.home+"/gone"))
	big := w.session("big")
	must.Do(t, os.WriteFile(big.Dir+"/cache/x", make([]byte, 1<<20), 0o600))
	must.Do(t, os.Link(big.Dir+"/cache/x", big.Dir+"/cache/same"))
	must.Do(t, os.Symlink("/usr", big.Dir+"/cache/link"))
	must.Do(t, os.Symlink(big.Dir, w.claudebox()+"/instances/linked"))
	must.Write(t, w.claudebox()+"/instances/stray", "")

	list, notes := w.list()
	if len(list) != 3 || len(notes) != 2 {
		t.Errorf("%d instances, notes %q", len(list), notes)
	}
	for root, want := range map[string]struct{ live, gone bool }{"live": {true, false}, "gone": {false, true}, "big": {false, false}} {
		in := list[root]
		if in.Live != want.live || in.Gone != want.gone || in.More || time.Since(in.LastUsed) > time.Hour || in.ID != state.ID(w.home+"/"+root) {
			t.Errorf("%s: %+v", root, in)
		}
	}
	if extra := list["big"].Bytes - list["gone"].Bytes; extra < 1<<20 || extra > 1<<20+1<<16 {
		t.Errorf("a megabyte with two names counts for %d bytes", extra)
	}
}

func TestADamagedRecordIsSaidAndMadeAnew(t *testing.T) {
	for name, damage := range map[string]func(file string) error{
		"cut":      func(file string) error { return os.Truncate(file, 30) },
		"emptied":  func(file string) error { return os.Truncate(file, 0) },
		"garbage":  func(file string) error { return os.WriteFile(file, []byte("{\x00\xff"), 0o600) },
		"gone":     os.Remove,
		"a folder": func(file string) error { return os.Rename(filepath.Dir(file)+"/cache", file) },
		"a pipe": func(file string) error {
			_ = os.Remove(file)
			return unix.Mkfifo(file, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newShelf(t)
			in := w.session("p")
			if name == "a folder" {
				must.Do(t, os.Remove(in.Dir+"/record"))
			}
			must.Do(t, damage(in.Dir+"/record"))
			list, notes := w.list()
			if found, ok := list["p"]; !ok || found.Gone || len(notes) != 1 || !strings.Contains(notes[0], "made anew") {
				t.Errorf("got %+v, %q", list, notes)
			}
			// what an agent says of its projects is not believed unproved
			must.Write(t, in.Dir+"/.claude/.claude.json", `{"projects":{"/etc":{},"`+w.home+`":{}}}`)
			if list, notes = w.list(); list[""].ID != in.ID || list[""].Gone || len(notes) != 1 {
				t.Errorf("got %+v, %q", list, notes)
			}
			if name == "a folder" {
				return
			}
			w.session("p")
			if _, notes := w.list(); len(notes) != 0 {
				t.Errorf("after a launch: %q", notes)
			}
		})
	}
}

// An agent can make folders deeper than any path, or any number of open files.
func TestAVeryDeepTreeIsCountedInPart(t *testing.T) {
	w := newShelf(t)
	in := w.session("deep")
	fd, err := unix.Open(in.Dir+"/cache", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must.Do(t, err)
	for range 3000 {
		must.Do(t, unix.Mkdirat(fd, "d", 0o700))
		next, err := unix.Openat(fd, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		must.Do(t, err)
		unix.Close(fd)
		fd = next
	}
	unix.Close(fd)
	if list, _ := w.list(); !list["deep"].More {
		t.Errorf("got %+v", list["deep"])
	}
	must.Do(t, state.Remove(w.claudebox(), in.ID))
}

func TestALinkedFolderOfInstancesIsRefused(t *testing.T) {
	w := newShelf(t)
	w.session("p")
	must.Do(t, os.Rename(w.claudebox()+"/instances", w.home+"/moved"))
	must.Do(t, os.Symlink(w.home+"/moved", w.claudebox()+"/instances"))
	if list, _, err := state.List(w.claudebox()); err == nil {
		t.Errorf("listed %v", list)
	}
}

func TestChoose(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	list := []state.Kept{
		{ID: "live", Live: true, Gone: true, Bytes: 1 << 30, LastUsed: now.AddDate(-1, 0, 0)},
		{ID: "gone", Gone: true, Bytes: 10, LastUsed: now.Add(-time.Hour)},
		{ID: "old", Bytes: 10, LastUsed: now.AddDate(0, -3, 0)},
		{ID: "big", Bytes: 1 << 30, LastUsed: now},
		{ID: "never", Bytes: 10},
	}
	for name, tc := range map[string]struct {
		by   state.Criteria
		want string
	}{
		"gone":        {state.Criteria{Gone: true}, "gone"},
		"old":         {state.Criteria{OlderThan: 30 * 24 * time.Hour}, "old never"},
		"big":         {state.Criteria{LargerThan: 1 << 20}, "big"},
		"old and big": {state.Criteria{OlderThan: time.Hour, LargerThan: 1 << 20}, ""},
		"all":         {state.Criteria{}, "gone old big never"},
	} {
		var got []string
		for _, in := range state.Choose(list, tc.by, now) {
			got = append(got, in.ID)
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestAgesAndSizes(t *testing.T) {
	for text, want := range map[string]time.Duration{"12h": 12 * time.Hour, "30d": 720 * time.Hour, "4w": 672 * time.Hour, "": 0, "d": 0, "-1d": 0, "0d": 0, "1y": 0, "1.5d": 0, "99999999999d": 0} {
		if got, err := state.ParseAge(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("ParseAge(%q) = %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]int64{"500M": 500 << 20, "2g": 2 << 30, "1T": 1 << 40, "5": 0, "M": 0, "": 0, "-5M": 0} {
		if got, err := state.ParseSize(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("ParseSize(%q) = %v, %v", text, got, err)
		}
	}
	for bytes, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 KiB", 1536: "1.5 KiB", 200 << 10: "200 KiB", 1 << 30: "1.0 GiB", 5 << 50: "5120 TiB"} {
		if got := state.ShowSize(bytes); got != want {
			t.Errorf("ShowSize(%d) = %q, want %q", bytes, got, want)
		}
	}
	now := time.Now()
	for ago, want := range map[time.Duration]string{time.Second: "just now", time.Minute: "1 minute ago", 3 * time.Hour: "3 hours ago", 50 * time.Hour: "2 days ago", -time.Hour: "just now"} {
		if got := state.ShowAge(now.Add(-ago), now); got != want {
			t.Errorf("ShowAge(%v) = %q, want %q", ago, got, want)
		}
	}
}
