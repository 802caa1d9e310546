package gcroot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"claudebox/checks/kit/must"
)

const path = "/nix/store/00000000000000000000000000000000-hello"

// daemon keeps its list of roots as the real one does.
type daemon struct{ auto string }

func (d daemon) AddIndirectRoots(_ context.Context, links []string) error {
	for _, link := range links {
		if err := os.Symlink(link, filepath.Join(d.auto, autoName(link))); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

type refusing struct{}

func (refusing) AddIndirectRoots(context.Context, []string) error { return errors.New("refused") }

// world is a folder of roots, a daemon, and the file of a plan.
func world(t *testing.T) (Folder, daemon, string) {
	t.Helper()
	dir := t.TempDir()
	f := Folder{Dir: filepath.Join(dir, "roots"), Auto: filepath.Join(dir, "auto")}
	of := filepath.Join(dir, "kept")
	for _, err := range []error{os.Mkdir(f.Auto, 0o700), os.WriteFile(of, nil, 0o600)} {
		must.Do(t, err)
	}
	return f, daemon{f.Auto}, of
}

func mustMake(t *testing.T, f Folder, d Registrar, of string) *Set {
	t.Helper()
	s, err := f.Make(t.Context(), d, of, []string{path})
	must.Do(t, err)
	return s
}

func exists(t *testing.T, file string) bool {
	t.Helper()
	_, err := os.Lstat(file)
	return err == nil
}

func TestWhatWasRootedIsHeldAgain(t *testing.T) {
	f, d, of := world(t)
	mustMake(t, f, d, of).Close()
	s, ok := f.Hold(of, []string{path})
	if !ok {
		t.Fatal("it is not held")
	}
	s.Close()
}

func TestNothingIsHeldThatIsNotCertain(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, f Folder, link string){
		"the set is gone":  func(_ *testing.T, _ Folder, link string) { os.RemoveAll(filepath.Dir(link)) },
		"the link is gone": func(_ *testing.T, _ Folder, link string) { os.Remove(link) },
		"the link leads elsewhere": func(_ *testing.T, _ Folder, link string) {
			os.Remove(link)
			os.Symlink("/nix/store/00000000000000000000000000000001-hello", link)
		},
		"the daemon does not know it":  func(_ *testing.T, f Folder, link string) { os.Remove(filepath.Join(f.Auto, autoName(link))) },
		"the daemon's list is missing": func(_ *testing.T, f Folder, _ string) { os.RemoveAll(f.Auto) },
	} {
		t.Run(name, func(t *testing.T) {
			f, d, of := world(t)
			mustMake(t, f, d, of).Close()
			spoil(t, f, filepath.Join(f.Dir, setName(of, []string{path}), filepath.Base(path)))
			if s, ok := f.Hold(of, []string{path}); ok {
				s.Close()
				t.Error("it is held")
			}
			os.MkdirAll(f.Auto, 0o700)
			mustMake(t, f, d, of).Close()
			if _, ok := f.Hold(of, []string{path}); !ok {
				t.Error("it is not mended")
			}
		})
	}
}

func TestARefusalOfTheDaemonIsNoRoot(t *testing.T) {
	f, _, of := world(t)
	if _, err := f.Make(t.Context(), refusing{}, of, []string{path}); err == nil {
		t.Error("no error")
	}
	if _, ok := f.Hold(of, []string{path}); ok {
		t.Error("it is held")
	}
}

func TestWithoutClaudeboxsFolderNoneIsMade(t *testing.T) {
	f, d, of := world(t)
	f.Dir = filepath.Join(f.Dir, "deep")
	if _, err := f.Make(t.Context(), d, of, []string{path}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestSweep(t *testing.T) {
	for name, tc := range map[string]struct {
		held, gone bool
		later      time.Duration
		want       bool
	}{
		"keeps what is used":                                     {want: true},
		"keeps what was not used for a month":                    {later: 30 * 24 * time.Hour, want: true},
		"takes what was not used for a year":                     {later: 365 * 24 * time.Hour},
		"takes what belongs to a file that is gone":              {gone: true},
		"leaves what is held, though the file is gone":           {held: true, gone: true, want: true},
		"leaves what is held, though it was not used for a year": {held: true, later: 365 * 24 * time.Hour, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			f, d, of := world(t)
			s := mustMake(t, f, d, of)
			if !tc.held {
				s.Close()
			}
			if tc.gone {
				os.Remove(of)
			}
			f.sweep(time.Now().Add(tc.later), "")
			if got := exists(t, filepath.Join(f.Dir, setName(of, []string{path}), filepath.Base(path))); got != tc.want {
				t.Errorf("it is there: %t, want %t", got, tc.want)
			}
			if tc.held {
				s.Close()
			}
		})
	}
}

func TestMakingOneSweepsTheOthers(t *testing.T) {
	f, d, of := world(t)
	mustMake(t, f, d, of+"-gone").Close()
	mustMake(t, f, d, of).Close()
	if sets(t, f) != 1 {
		t.Errorf("%d sets are there", sets(t, f))
	}
}

func TestAFilesNewSetTakesThePlaceOfTheOldOnceThatIsNotHeld(t *testing.T) {
	f, d, of := world(t)
	old := mustMake(t, f, d, of)
	for i, want := range []int{2, 2, 1} {
		s, err := f.Make(t.Context(), d, of, []string{"/nix/store/11111111111111111111111111111111-new"})
		must.Do(t, err)
		if s.Close(); sets(t, f) != want {
			t.Errorf("%d sets are there, want %d", sets(t, f), want)
		}
		if i == 1 {
			old.Close()
		}
	}
}

func sets(t *testing.T, f Folder) int {
	t.Helper()
	list, err := os.ReadDir(f.Dir)
	must.Do(t, err)
	return len(list)
}

func TestManyAtOnceMakeHoldAndSweep(t *testing.T) {
	f, d, of := world(t)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			of := of + string(rune('a'+i%3))
			s, ok := f.Hold(of, []string{path})
			if !ok {
				var err error
				if s, err = f.Make(t.Context(), d, of, []string{path}); err != nil {
					return // another sweeps it: no root then, and the plan is not kept
				}
			}
			if to, _ := os.Readlink(s.link(path)); to != path {
				t.Error("what is held has no link")
			}
			f.sweep(time.Now().Add(365*24*time.Hour), "")
			if to, _ := os.Readlink(s.link(path)); to != path {
				t.Error("what is held was swept")
			}
			s.Close()
		})
	}
	all.Wait()
}

// The name is that of `nix-store --add-root` for this link, seen on 2.26.
func TestTheDaemonsNameOfALink(t *testing.T) {
	if got, want := autoName("/var/cache/claudebox-lab/nix"), "24qdddkfvw6xnyh0bij1qx3sasyfx2d6"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
