package project_test

import (
	"os"
	"sync"
	"testing"

	"claudebox/internal/workspace/project"
)

func (w world) there(name string) bool {
	_, err := os.Lstat(w.path(name))
	return err == nil
}

func TestOpenMakesNothing(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	w.open("p")
	if w.there("p/.git/commondir") {
		t.Error("Open made a stand-in")
	}
}

func TestHoldMakesStandInsAndReleaseTakesThemAway(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	w.git("p", "config", "extensions.worktreeConfig", "true")
	must(t, os.RemoveAll(w.path("p/.git/hooks")))
	h, err := w.open("p").Hold()
	must(t, err)
	for _, name := range []string{"commondir", "hooks", "config.worktree"} {
		if !w.there("p/.git/" + name) {
			t.Errorf("%s is not there", name)
		}
	}
	w.git("p", "status")
	w.git("p", "worktree", "add", "-q", "../l")
	w.git("l", "status")
	w.git("p", "worktree", "remove", "../l")
	h.Release()
	for _, name := range []string{"commondir", "hooks", "config.worktree"} {
		if w.there("p/.git/" + name) {
			t.Errorf("%s is still there", name)
		}
	}
	h.Release() // a second time does nothing
}

func TestTheLastSessionTakesStandInsAway(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	first, err := w.open("p").Hold()
	must(t, err)
	second, err := w.open("p").Hold()
	must(t, err)
	first.Release()
	if !w.there("p/.git/commondir") {
		t.Fatal("gone while a session relies on it")
	}
	second.Release()
	if w.there("p/.git/commondir") {
		t.Error("still there")
	}
}

func TestWhatAKilledSessionLeftIsTakenOver(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	w.write("p/.git/commondir", "./\n")
	h, err := w.open("p").Hold()
	must(t, err)
	h.Release()
	if w.there("p/.git/commondir") {
		t.Error("still there")
	}
}

func TestReleaseLeavesWhatIsNotItsOwn(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	must(t, os.RemoveAll(w.path("p/.git/hooks")))
	h, err := w.open("p").Hold()
	must(t, err)
	w.write("p/.git/hooks/pre-commit", "the user's, made meanwhile")
	w.write("p/.git/commondir", "../elsewhere\n")
	h.Release()
	if !w.there("p/.git/hooks/pre-commit") || !w.there("p/.git/commondir") {
		t.Error("something of the user's is gone")
	}
}

func TestManySessionsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	p := w.open("p")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			h, err := p.Hold()
			if err != nil {
				t.Error(err)
				return
			}
			if !w.there("p/.git/commondir") {
				t.Error("held, but not there")
			}
			h.Release()
		})
	}
	wg.Wait()
	if w.there("p/.git/commondir") {
		t.Error("still there")
	}
}

func TestNothingToHoldWithoutGit(t *testing.T) {
	w := newWorld(t)
	w.mkdir("p")
	h, err := w.open("p").Hold()
	must(t, err)
	h.Release()
	(&project.Hold{}).Release()
}
