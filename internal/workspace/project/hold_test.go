package project_test

import (
	"os"
	"sync"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/workspace/project"
)

func (w world) there(name string) bool {
	_, err := os.Lstat(w.path(name))
	return err == nil
}

// names has git name a file and a folder that are not there: they get stand-ins.
func (w world) names(dir string) {
	w.git(dir, "config", "core.attributesFile", "attrs")
	w.git(dir, "config", "core.hooksPath", ".husky")
}

func TestOpenMakesNothing(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	w.names("p")
	w.open("p")
	if w.there("p/attrs") {
		t.Error("Open made a stand-in")
	}
}

func TestHoldMakesStandInsAndReleaseTakesThemAway(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	w.names("p")
	h, err := w.open("p").Hold()
	must.Do(t, err)
	for _, name := range []string{"attrs", ".husky"} {
		if !w.there("p/" + name) {
			t.Errorf("%s is not there", name)
		}
	}
	w.git("p", "status")
	w.git("p", "worktree", "add", "-q", "../l")
	w.git("l", "status")
	w.git("p", "worktree", "remove", "../l")
	h.Release()
	for _, name := range []string{"attrs", ".husky"} {
		if w.there("p/" + name) {
			t.Errorf("%s is still there", name)
		}
	}
	h.Release() // a second time does nothing
}

func TestReleaseLeavesWhatIsNotItsOwn(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	w.names("p")
	h, err := w.open("p").Hold()
	must.Do(t, err)
	w.write("p/.husky/pre-commit", "the user's, made meanwhile")
	w.write("p/attrs", "../elsewhere\n")
	h.Release()
	if !w.there("p/.husky/pre-commit") || !w.there("p/attrs") {
		t.Error("something of the user's is gone")
	}
}

func TestManySessionsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	w.names("p")
	p := w.open("p")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			h, err := p.Hold()
			if err != nil {
				t.Error(err)
				return
			}
			if !w.there("p/attrs") {
				t.Error("held, but not there")
			}
			h.Release()
		})
	}
	wg.Wait()
	if w.there("p/attrs") {
		t.Error("still there")
	}
}

func TestNothingToHoldWithoutGit(t *testing.T) {
	w := newWorld(t)
	w.mkdir("p")
	h, err := w.open("p").Hold()
	must.Do(t, err)
	h.Release()
	(&project.Hold{}).Release()
}
