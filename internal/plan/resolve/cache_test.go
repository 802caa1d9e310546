package resolve_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/nix/nixeval"
	"claudebox/internal/plan/resolve"
)

const evaluated, pinned = "evaluate go in nixpkgs", "pin go go-bin nixpkgs"

// cached runs once to fill a cache and gives its folder.
func cached(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "claudebox", "resolve")
	w := newWorld("go")
	w.Cache = dir
	if _, err := w.run(t); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestCache(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(w *world, file string) error
		calls  []string
	}{
		"answers the same question": {
			nil, []string{pinned},
		},
		"answers in another order": {
			func(w *world, _ string) error { slices.Reverse(w.Packages); return nil }, []string{pinned},
		},
		"does not answer for another nixpkgs": {
			func(w *world, _ string) error { w.Nixpkgs, w.Packages = path("other"), w.Packages[:1]; return nil },
			[]string{"evaluate go in other", "pin go go-bin other"},
		},
		"does not answer for another system": {
			func(w *world, _ string) error {
				w.System, w.Manifest.System = "aarch64-linux", "aarch64-linux"
				return nil
			},
			[]string{evaluated, pinned},
		},
		"does not answer for another evaluator": {
			func(w *world, _ string) error { w.Evaluator = otherNix{w.Evaluator.(fakeNixpkgs)}; return nil },
			[]string{evaluated, pinned},
		},
		"does not answer for another package": {
			func(w *world, _ string) error { w.Packages[0].Attr = "jq"; w.store(path("jq"), valid); return nil },
			[]string{"evaluate jq in nixpkgs", "pin jq nixpkgs"},
		},
		"is passed over when it is cut short": {
			func(_ *world, file string) error { return os.Truncate(file, 20) }, []string{evaluated, pinned},
		},
		"is passed over when it is empty": {
			func(_ *world, file string) error { return os.Truncate(file, 0) }, []string{evaluated, pinned},
		},
		"is passed over when it lacks the package": {
			func(_ *world, file string) error { return os.WriteFile(file, []byte("{}"), 0o600) }, []string{evaluated, pinned},
		},
		"is passed over when it holds no store path": {
			func(_ *world, file string) error {
				return os.WriteFile(file, []byte(`{"go":{"outputs":{"out":"/etc"},"install":["out"]}}`), 0o600)
			}, []string{evaluated, pinned},
		},
		"is passed over when it cannot be read": {
			func(_ *world, file string) error {
				if err := os.Remove(file); err != nil {
					return err
				}
				return os.Mkdir(file, 0o700)
			}, []string{evaluated, pinned},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := cached(t)
			w := newWorld("go", "git")
			w.Cache = dir
			if tc.change != nil {
				must.Do(t, tc.change(w, onlyFile(t, dir)))
			}
			if _, err := w.run(t); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(w.calls, tc.calls) {
				t.Errorf("calls = %q; want %q", w.calls, tc.calls)
			}
		})
	}
}

type otherNix struct{ fakeNixpkgs }

func (otherNix) Identity() string { return "another" }

// onlyFile is the one entry of a cache: nothing half-written may lie beside.
func onlyFile(t *testing.T, dir string) string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("the cache holds %v, %v; want one entry", files, err)
	}
	return filepath.Join(dir, files[0].Name())
}

func TestACorruptEntryIsWrittenAnew(t *testing.T) {
	dir := cached(t)
	must.Write(t, onlyFile(t, dir), "garbage")
	for _, calls := range [][]string{{evaluated, pinned}, {pinned}} {
		w := newWorld("go")
		w.Cache = dir
		if _, err := w.run(t); err != nil || !slices.Equal(w.calls, calls) {
			t.Errorf("calls = %q, %v; want %q", w.calls, err, calls)
		}
	}
}

func TestFailuresAreNotCached(t *testing.T) {
	w := newWorld("go", "nope")
	w.Cache = filepath.Join(t.TempDir(), "cache")
	if _, err := w.run(t); err == nil {
		t.Fatal("Packages found nope")
	}
	if files, _ := os.ReadDir(w.Cache); len(files) != 0 {
		t.Errorf("the cache holds %v; want nothing", files)
	}
}

func TestACacheThatCannotBeWrittenIsNoFault(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must.Write(t, file, "")
	w := newWorld("go")
	w.Cache = filepath.Join(file, "cache")
	if _, err := w.run(t); err != nil {
		t.Errorf("Packages = %v; want the packages all the same", err)
	}
}

func TestAFetchedNixpkgsIsFetchedOnce(t *testing.T) {
	dir := t.TempDir()
	for i, fetches := range []int{1, 0, 1} {
		w := newWorld("go")
		w.Cache, w.Nixpkgs = dir, "github:NixOS/nixpkgs/0123"
		w.Exists = func(string) bool { return i < 2 } // the third time it is collected
		w.Manifest.Base, w.Manifest.Tools = nil, nil
		w.store(path("fetched"), valid)
		res, err := resolve.Packages(t.Context(), w.Request)
		if err != nil || res.Nixpkgs != (resolve.Nixpkgs{Path: path("fetched"), Rev: "rev"}) {
			t.Fatalf("Packages = %+v, %v; want the fetched nixpkgs", res.Nixpkgs, err)
		}
		if got := count(w.calls, "fetch github:NixOS/nixpkgs/0123"); got != fetches {
			t.Errorf("run %d fetched %d times; want %d", i, got, fetches)
		}
	}
}

func count(calls []string, call string) (n int) {
	for _, c := range calls {
		if c == call {
			n++
		}
	}
	return n
}

// Writers and readers of one entry never see half of it.
func TestManyRunsShareACache(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for range 20 {
				w := newWorld("go")
				w.Cache = dir
				if got, err := w.run(t); err != nil || got[0] != "go^bin,out (profile work:1)" {
					t.Errorf("Packages = %q, %v", got, err)
				}
			}
		})
	}
	all.Wait()
	onlyFile(t, dir)
}

// Those who begin at once and know nothing ask once.
func TestManyRunsEvaluateOnce(t *testing.T) {
	dir := t.TempDir()
	var asked atomic.Int32
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			w := newWorld("go")
			w.Cache, w.Evaluator = dir, slow{w.Evaluator}
			if _, err := w.run(t); err != nil {
				t.Error(err)
			}
			asked.Add(int32(count(w.calls, evaluated)))
		})
	}
	all.Wait()
	if asked.Load() != 1 {
		t.Errorf("%d evaluations", asked.Load())
	}
}

// slow is an evaluator that leaves the others time to ask as well.
type slow struct{ resolve.Evaluator }

func (s slow) Evaluate(ctx context.Context, q nixeval.Query) ([]nixeval.Package, error) {
	time.Sleep(20 * time.Millisecond)
	return s.Evaluator.Evaluate(ctx, q)
}

var _ resolve.Evaluator = nixeval.Evaluator{}

func TestACacheThatHasGrownLosesItsOldestFiles(t *testing.T) {
	dir := cached(t)
	kept := onlyFile(t, dir)
	old := time.Now().Add(-time.Hour)
	for i := range 300 {
		file := filepath.Join(dir, fmt.Sprintf("%03d.json", i))
		must.Do(t, os.WriteFile(file, nil, 0o600), os.Chtimes(file, old.Add(time.Duration(i)*time.Second), old.Add(time.Duration(i)*time.Second)))
	}
	w := newWorld("jq")
	w.Cache = dir
	w.store(path("jq"), valid)
	if _, err := w.run(t); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]bool{kept: true, filepath.Join(dir, "000.json"): false, filepath.Join(dir, "299.json"): true} {
		if _, err := os.Stat(file); (err == nil) != want {
			t.Errorf("%s: %v", filepath.Base(file), err)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) > 256 {
		t.Errorf("it holds %d files", len(files))
	}
}
