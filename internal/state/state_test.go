package state_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"claudebox/internal/state"
)

func TestFirstLaunchMakesAWholeInstance(t *testing.T) {
	w := newWorld(t)
	in := w.session(w.request())
	want := []string{
		"./", ".claude/", ".claude/.claude.json", ".claude/CLAUDE.md", ".claude/settings.json",
		"cache/", "cache/home-.npm/", "instance.json", "live",
	}
	if got := w.tree(".claudebox/instances/" + state.ID("/src/p")); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	for _, name := range want {
		info, err := os.Lstat(filepath.Join(in.Dir, name))
		must(t, err)
		if perm := info.Mode().Perm(); perm != 0o600 && perm != 0o700 {
			t.Errorf("%s has mode %o", name, perm)
		}
	}
}

func TestLookMakesNothing(t *testing.T) {
	w := newWorld(t)
	for _, kind := range []state.Kind{state.Project, state.Shared, state.Ephemeral} {
		req := w.request()
		req.Kind = kind
		in, err := state.Look(req)
		must(t, err)
		if len(in.Makes) == 0 || len(w.tree(".")) != 1 {
			t.Errorf("%s: says it makes %q; made %q", kind, in.Makes, w.tree("."))
		}
	}
}

func TestIDIsSixteenHexDigitsOfTheRoot(t *testing.T) {
	// printf %s /src/p | sha256sum | cut -c1-16
	if got := state.ID("/src/p"); got != "c54da4317da834ae" {
		t.Errorf("got %s", got)
	}
}

func TestSecondLaunchMakesNothingAndKeepsEverything(t *testing.T) {
	w := newWorld(t)
	in := w.launch(w.request())
	w.write(rel(w, in.Dir)+"/.claude/projects/x.jsonl", "history")
	must(t, in.Close())
	again, err := state.Look(w.request())
	must(t, err)
	if len(again.Makes) != 0 {
		t.Errorf("a warm launch would make %q", again.Makes)
	}
	must(t, again.Prepare())
	if got := w.read(rel(w, in.Dir) + "/.claude/projects/x.jsonl"); got != "history" {
		t.Errorf("history is %q", got)
	}
}

func rel(w world, path string) string {
	r, err := filepath.Rel(w.home, path)
	must(w.t, err)
	return r
}

func TestProjectsDoNotShareButWorktreesDo(t *testing.T) {
	w := newWorld(t)
	a := w.session(w.request())
	other := w.request()
	other.Root = "/src/q"
	if b := w.session(other); b.Dir == a.Dir {
		t.Error("two roots share an instance")
	}
	shared := w.request()
	shared.Kind = state.Shared
	sharedOther := other
	sharedOther.Kind = state.Shared
	if w.session(shared).Dir != w.session(sharedOther).Dir {
		t.Error("`state: shared` is not shared")
	}
}

func TestEphemeralIsGoneAfterwards(t *testing.T) {
	w := newWorld(t)
	req := w.request()
	req.Kind = state.Ephemeral
	in := w.launch(req)
	closed := filepath.Join(in.Dir, ".claude", "closed")
	must(t, os.MkdirAll(filepath.Join(closed, "x"), 0o700))
	must(t, os.Chmod(closed, 0))
	must(t, in.Close())
	if _, err := os.Lstat(in.Dir); err == nil {
		t.Error("it is still there")
	}
}

func TestWhatAKilledSessionLeftIsSwept(t *testing.T) {
	w := newWorld(t)
	req := w.request()
	req.Kind = state.Ephemeral
	live := w.launch(req)
	w.write(".claudebox/ephemeral/0123456789abcdef-dead/live", "")
	w.write(".claudebox/instances/.new-dead/live", "")
	req2 := req
	second := w.launch(req2)
	w.session(w.request())
	for path, want := range map[string]bool{
		live.Dir: true, second.Dir: true,
		w.path(".claudebox/ephemeral/0123456789abcdef-dead"): false,
		w.path(".claudebox/instances/.new-dead"):             false,
	} {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s there: %v, want %v", path, err == nil, want)
		}
	}
}

func TestHostStateIsRefusedWithARemedy(t *testing.T) {
	w := newWorld(t)
	req := w.request()
	req.Kind = state.Host
	_, err := state.Look(req)
	wantRefusal(t, err, "not built yet", "project")
}

func TestTwoLaunchesAtOnce(t *testing.T) {
	w := newWorld(t)
	var wg sync.WaitGroup
	errs := make(chan error, 20)
	for range 10 {
		wg.Go(func() {
			in, err := state.Look(w.request())
			if err == nil {
				err = in.Prepare()
			}
			errs <- err
			errs <- in.Close()
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		must(t, err)
	}
	left, err := os.ReadDir(w.path(".claudebox/instances"))
	must(t, err)
	if len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// tampered are things that an agent, or somebody, may have done to an
// instance's folders.
var tampered = map[string]struct {
	do   func(t *testing.T, w world, dir string)
	want string
}{
	"the instance is a link": {func(t *testing.T, w world, dir string) {
		must(t, os.Rename(dir, w.path("elsewhere")))
		must(t, os.Symlink(w.path("elsewhere"), dir))
	}, "not a real folder"},
	"the agent's home is a link": {func(t *testing.T, w world, dir string) {
		must(t, os.Rename(dir+"/.claude", w.path("elsewhere")))
		must(t, os.Symlink(w.path("elsewhere"), dir+"/.claude"))
	}, "not a real folder"},
	"the agent's home is a file": {func(t *testing.T, _ world, dir string) {
		must(t, os.RemoveAll(dir+"/.claude"))
		must(t, os.WriteFile(dir+"/.claude", nil, 0o600))
	}, "not a real folder"},
	"the agent's home is open to others": {func(t *testing.T, _ world, dir string) {
		must(t, os.Chmod(dir+"/.claude", 0o777))
	}, "mode is 777"},
	"the instance is open to others": {func(t *testing.T, _ world, dir string) {
		must(t, os.Chmod(dir, 0o755))
	}, "mode is 755"},
	"the folder of instances is a link": {func(t *testing.T, w world, dir string) {
		must(t, os.Rename(filepath.Dir(dir), w.path("elsewhere")))
		must(t, os.Symlink(w.path("elsewhere"), filepath.Dir(dir)))
	}, "not a real folder"},
	"CLAUDEBOX_HOME can be written by others": {func(t *testing.T, w world, _ string) {
		must(t, os.Chmod(w.path(".claudebox"), 0o777))
	}, "not writable by others"},
}

func TestTamperedInstancesAreRefused(t *testing.T) {
	for name, tc := range tampered {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			in := w.session(w.request())
			tc.do(t, w, in.Dir)
			_, err := state.Look(w.request())
			wantRefusal(t, err, tc.want, "")
		})
	}
}

func TestSomebodyElsesHomeIsRefused(t *testing.T) {
	w := newWorld(t)
	w.session(w.request())
	req := w.request()
	req.UID++
	_, err := state.Look(req)
	wantRefusal(t, err, "must be yours", "CLAUDEBOX_HOME")
}

// planted are things an agent may have put where a file of ours belongs.
var planted = map[string]func(t *testing.T, w world, at string){
	"a link to a file of the user": func(t *testing.T, w world, at string) {
		must(t, os.Symlink(w.path("victim"), at))
	},
	"a link to nothing": func(t *testing.T, w world, at string) {
		must(t, os.Symlink(w.path("made-through-the-link"), at))
	},
	"a hard link to a file of the user": func(t *testing.T, w world, at string) {
		must(t, os.Link(w.path("victim"), at))
	},
	"a pipe": func(t *testing.T, _ world, at string) {
		must(t, syscall.Mkfifo(at, 0o600))
	},
	"a folder": func(t *testing.T, _ world, at string) {
		must(t, os.MkdirAll(at+"/x", 0o700))
	},
	"no JSON": func(t *testing.T, _ world, at string) {
		must(t, os.WriteFile(at, []byte("{"), 0o600))
	},
	"JSON of another shape": func(t *testing.T, _ world, at string) {
		must(t, os.WriteFile(at, []byte(`{"projects":[],"customApiKeyResponses":3}`), 0o600))
	},
}

func TestPlantedFilesAreReplacedAndLeadNowhere(t *testing.T) {
	for name, plant := range planted {
		for _, file := range []string{".claude.json", "settings.json", "CLAUDE.md", "keybindings.json", ".credentials.json", "agents"} {
			t.Run(name+" at "+file, func(t *testing.T) {
				w := newWorld(t)
				w.write("victim", "victim")
				w.write(".claude/keybindings.json", "{}")
				w.write(".claude/agents/a.md", "a")
				w.write(".claude/.credentials.json", `{"claudeAiOauth":{"accessToken":"t","expiresAt":2}}`)
				in := w.session(w.request())
				at := filepath.Join(in.Dir, ".claude", file)
				must(t, os.Remove(at))
				plant(t, w, at)
				w.session(w.request())
				if got := w.read("victim"); got != "victim" {
					t.Errorf("a file of the user now holds %q", got)
				}
				if _, err := os.Lstat(w.path("made-through-the-link")); err == nil {
					t.Error("a file was made through a link")
				}
				info, err := os.Lstat(at)
				must(t, err)
				if isLink := info.Mode()&os.ModeSymlink != 0; isLink != (file == "agents") || info.IsDir() {
					t.Errorf("%s is %v", file, info.Mode())
				}
			})
		}
	}
}

func TestListNamesRootAndUse(t *testing.T) {
	w := newWorld(t)
	in := w.launch(w.request())
	list, err := state.List(w.path(".claudebox"))
	must(t, err)
	if len(list) != 1 || list[0].Root != "/src/p" || !list[0].Live || list[0].LastUsed.IsZero() || list[0].ID != in.ID {
		t.Errorf("got %+v", list)
	}
	must(t, in.Close())
	if list, _ = state.List(w.path(".claudebox")); list[0].Live {
		t.Error("it is still live")
	}
	if none, err := state.List(w.path("nothing")); err != nil || len(none) != 0 {
		t.Errorf("got %v, %v", none, err)
	}
}

func TestApprovalsAreKeptOutOfReach(t *testing.T) {
	w := newWorld(t)
	in, err := state.Look(w.request())
	must(t, err)
	in.Approve([]string{"a line", "another\nwith a line end"})
	must(t, in.Prepare())
	must(t, in.Close())
	again, err := state.Look(w.request())
	must(t, err)
	if got := again.Approved(); len(got) != 2 || got[1] != "another\nwith a line end" {
		t.Errorf("got %q", got)
	}
	if strings.Contains(strings.Join(w.tree(rel(w, in.Dir)+"/.claude"), " "), "approved") {
		t.Error("approvals lie in the agent's home")
	}
}
