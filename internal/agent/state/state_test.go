package state_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/agent/state"
)

func TestFirstLaunchMakesAWholeInstance(t *testing.T) {
	w := newWorld(t)
	in := w.session(w.request())
	want := []string{
		"./", ".claude/", ".claude/.claude.json", ".claude/CLAUDE.md", ".claude/settings.json",
		"cache/", "cache/home-.npm/", "live", "placeholders", "record",
	}
	if got := w.tree(".claudebox/instances/" + state.ID("/src/p")); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	for _, name := range want {
		info, err := os.Lstat(filepath.Join(in.Dir, name))
		must.Do(t, err)
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
		must.Do(t, err)
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
	must.Do(t, in.Close())
	again, err := state.Look(w.request())
	must.Do(t, err)
	if len(again.Makes) != 0 {
		t.Errorf("a warm launch would make %q", again.Makes)
	}
	must.Do(t, again.Prepare())
	if got := w.read(rel(w, in.Dir) + "/.claude/projects/x.jsonl"); got != "history" {
		t.Errorf("history is %q", got)
	}
}

func rel(w world, path string) string {
	r, err := filepath.Rel(w.home, path)
	must.Do(w.t, err)
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
	must.Do(t, os.MkdirAll(filepath.Join(closed, "x"), 0o700))
	must.Do(t, os.Chmod(closed, 0))
	must.Do(t, in.Close())
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
		must.Do(t, err)
	}
	left, err := os.ReadDir(w.path(".claudebox/instances"))
	must.Do(t, err)
	if len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

func TestRemoveTakesAllOfAnInstanceAndFollowsNoLink(t *testing.T) {
	w := newWorld(t)
	in := w.session(w.request())
	w.write("mine/file", "kept")
	must.Do(t, os.Symlink(w.path("mine"), in.Dir+"/.claude/link"))
	must.Do(t, os.MkdirAll(in.Dir+"/cache/closed/deep", 0o700))
	must.Do(t, os.Chmod(in.Dir+"/cache/closed", 0))
	must.Do(t, state.Remove(w.path(".claudebox"), in.ID))
	if left, err := os.ReadDir(w.path(".claudebox/instances")); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if w.read("mine/file") != "kept" {
		t.Error("a link was followed")
	}
	if err := state.Remove(w.path(".claudebox"), in.ID); err == nil {
		t.Error("removed what is not there")
	}
}

func TestAnInstanceInUseIsNotRemoved(t *testing.T) {
	w := newWorld(t)
	in := w.launch(w.request())
	if err := state.Remove(w.path(".claudebox"), in.ID); !errors.Is(err, state.ErrLive) {
		t.Errorf("got %v", err)
	}
	must.Do(t, in.Close())
	must.Do(t, state.Remove(w.path(".claudebox"), in.ID))
}

// A launch that has looked is overtaken by a removal: what it then uses is
// whole and stays.
func TestALaunchThatIsOvertakenByARemovalStartsAfresh(t *testing.T) {
	w := newWorld(t)
	old := w.session(w.request())
	in, err := state.Look(w.request())
	must.Do(t, err)
	must.Do(t, state.Remove(w.path(".claudebox"), old.ID))
	must.Do(t, in.Prepare())
	if !state.Live(old.Dir) || w.read(rel(w, old.Dir)+"/.claude/CLAUDE.md") == "" {
		t.Error("what it uses is not whole")
	}
	must.Do(t, in.Close())
}

// whenRemoved gives a launch that has looked at an instance, and a function by
// which another process removes that, and in a second case makes one again.
func whenRemoved(t *testing.T, do func(t *testing.T, in, old *state.Instance, remove func())) {
	for name, after := range map[string]func(world){
		"removed":        func(world) {},
		"and made again": func(w world) { w.session(w.request()) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			old := w.session(w.request())
			in, err := state.Look(w.request())
			must.Do(t, err)
			do(t, &in, &old, func() {
				must.Do(t, state.Remove(w.path(".claudebox"), old.ID))
				after(w)
			})
		})
	}
}

func TestAnInstanceThatIsRemovedBeforeItIsLockedIsNotHeld(t *testing.T) {
	whenRemoved(t, func(t *testing.T, in, _ *state.Instance, remove func()) {
		if held, err := in.OpenThen(remove); held || err != nil {
			t.Errorf("held: %v, %v", held, err)
		}
	})
}

// What a launch is looking at is removed: there is none, and nothing is wrong.
func TestAnInstanceThatIsRemovedWhileItIsLookedAtIsNotThere(t *testing.T) {
	whenRemoved(t, func(t *testing.T, in, old *state.Instance, remove func()) {
		must.Do(t, in.FindThen(remove))
		if !slices.Equal(in.Makes, []string{old.Dir}) {
			t.Errorf("would make %q", in.Makes)
		}
		must.Do(t, in.Prepare())
		must.Do(t, in.Close())
	})
}

func TestAnInstanceThatIsHalfThereIsRefused(t *testing.T) {
	w := newWorld(t)
	in := w.session(w.request())
	err := in.FindThen(func() { must.Do(t, os.RemoveAll(in.Dir+"/.claude")) })
	if err == nil || !strings.Contains(err.Error(), "not a real folder") {
		t.Errorf("got %v", err)
	}
}

func TestLaunchesAndRemovalsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.session(w.request())
	stop := make(chan struct{})
	var removing, launching sync.WaitGroup
	removing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = state.Remove(w.path(".claudebox"), state.ID("/src/p")) // it may be in use, or not there
			}
		}
	})
	for range 3 {
		launching.Go(func() {
			for range 20 {
				in, err := state.Look(w.request())
				if err == nil {
					err = in.Prepare()
				}
				if err != nil {
					t.Error(err)
					continue
				}
				if _, err := os.Stat(in.Dir + "/.claude/CLAUDE.md"); err != nil {
					t.Error("taken away while in use:", err)
				}
				must.Do(t, in.Close())
			}
		})
	}
	launching.Wait()
	close(stop)
	removing.Wait()
}

func TestApprovalsAreKeptOutOfReach(t *testing.T) {
	w := newWorld(t)
	in, err := state.Look(w.request())
	must.Do(t, err)
	for _, profile := range []string{"default", "work"} {
		in.Approve(profile, []byte(`["another of `+profile+`\nwith a line end"]`))
		must.Do(t, in.Prepare())
		must.Do(t, in.Close())
		in, err = state.Look(w.request())
		must.Do(t, err)
	}
	for _, profile := range []string{"default", "work"} {
		if got := string(in.Approved(profile)); got != `["another of `+profile+`\nwith a line end"]` {
			t.Errorf("%s: got %q", profile, got)
		}
	}
	if strings.Contains(strings.Join(w.tree(rel(w, in.Dir)+"/.claude"), " "), "approved") {
		t.Error("approvals lie in the agent's home")
	}
}
