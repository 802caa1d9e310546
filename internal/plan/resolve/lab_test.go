//go:build lab

// These tests resolve against the lab's manifest, nixpkgs and daemon, with
// everything real.

package resolve_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
	"claudebox/internal/diag"
	"claudebox/internal/nix/nixdaemon"
	"claudebox/internal/nix/nixeval"
	"claudebox/internal/plan/resolve"
)

func need(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set", name)
	}
	return value
}

// manifestFile is the lab's manifest, named or beside the claudebox to test.
func manifestFile(t testing.TB) string {
	if file := os.Getenv("CLAUDEBOX_MANIFEST"); file != "" {
		return file
	}
	return filepath.Join(filepath.Dir(need(t, "CLAUDEBOX_BIN")), "../share/claudebox/manifest.json")
}

// labRequest is the request of a real launch for packages.
func labRequest(t testing.TB, packages ...string) resolve.Request {
	t.Helper()
	f, err := os.Open(manifestFile(t))
	must.Do(t, err)
	defer f.Close()
	m, err := resolve.ReadManifest(f)
	must.Do(t, err)
	store := &nixdaemon.Client{Socket: need(t, "CLAUDEBOX_LAB_SOCKET")}
	t.Cleanup(func() { store.Close() })
	return resolve.Request{
		Manifest: m, Packages: profilePackages(packages), Nixpkgs: "pinned", Store: store, Cache: t.TempDir(),
		Evaluator: nixeval.Evaluator{Program: filepath.Dir(m.Tools[resolve.ToolNix]) + "/nix-instantiate", Env: []string{"NIX_REMOTE=daemon"}},
	}
}

func TestLabAManifestHitNeedsNoDaemon(t *testing.T) {
	req := labRequest(t, "git", "jq")
	req.Store = &nixdaemon.Client{Socket: "/nowhere"}
	req.Evaluator = nixeval.Evaluator{Program: "/nowhere"}
	res, err := resolve.Packages(t.Context(), req)
	must.Do(t, err)
	for _, p := range res.Packages {
		for _, o := range p.Outputs {
			if _, err := os.Stat(o.Path); err != nil {
				t.Error(err)
			}
		}
	}
}

// A package outside the manifest is evaluated and realised; from then on the
// cache answers, also after the garbage collector took the package away.
func TestLabEvaluatedPackage(t *testing.T) {
	req := labRequest(t, "hello", "sampleSet.hello", "manyOutputsSample^dev,out")
	res, err := resolve.Packages(t.Context(), req)
	must.Do(t, err)
	hello := res.Packages[0].Outputs[0].Path
	if out, err := exec.Command(hello + "/bin/hello").CombinedOutput(); err != nil {
		t.Errorf("hello: %v: %s", err, out)
	}
	var names []string
	for _, o := range res.Packages[2].Outputs {
		names = append(names, o.Name)
	}
	if !slices.Equal(names, []string{"dev", "out"}) {
		t.Errorf("manyOutputsSample has %q; want dev, out", names)
	}

	if out, err := trial.Delete(hello); err == nil {
		t.Errorf("a package in use was deleted: %s", out)
	}
	req.Store.(*nixdaemon.Client).Close()
	deleteWhenFree(t, hello)

	again := labRequest(t, "hello", "sampleSet.hello", "manyOutputsSample^dev,out")
	again.Cache = req.Cache
	if _, err := resolve.Packages(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(hello); err != nil {
		t.Errorf("the package was not brought back: %v", err)
	}
	again.Evaluator = identityOnly{again.Evaluator}
	if _, err := resolve.Packages(t.Context(), again); err != nil {
		t.Errorf("without an evaluator the cache does not answer: %v", err)
	}
}

// identityOnly is an evaluator that finds the cache's entries and no more.
type identityOnly struct{ resolve.Evaluator }

// deleteWhenFree deletes a path as soon as the daemon's worker has let go.
// Somebody else may hold it: then there is nothing to show.
func deleteWhenFree(t *testing.T, path string) {
	t.Helper()
	var out []byte
	for range 50 {
		var err error
		if out, err = trial.Delete(path); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Logf("%s is held by somebody else, so it was not collected: %s", path, out)
}

func TestLabProblems(t *testing.T) {
	req := labRequest(t, "helo", "unfreeSample", "insecureSample", "brokenSample", "renamedSample", "abortingSample", "notAPackage", "sampleSet", "git")
	_, err := resolve.Packages(t.Context(), req)
	var problems diag.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("Packages = %v; want problems", err)
	}
	wants := []string{"did you mean hello?", "unfree", "insecure", "broken", "renamedSample: ", "abortingSample cannot be evaluated: ", "not a package", "not a package"}
	if len(problems) != len(wants) {
		t.Fatalf("%d problems, want %d:\n%v", len(problems), len(wants), err)
	}
	for i, want := range wants {
		t.Log(problems[i].String(), problems[i].Message, "->", problems[i].Remedy)
		if problems[i].Line != i+1 || !strings.Contains(problems[i].Message, want) {
			t.Errorf("problem %d = %v; want %q in line %d", i, problems[i], want, i+1)
		}
	}
}

func TestLabABuildThatFailsSaysWhy(t *testing.T) {
	_, err := resolve.Packages(t.Context(), labRequest(t, "unbuildableSample", "hello"))
	var problems diag.Problems
	if !errors.As(err, &problems) || len(problems) != 1 || !strings.HasPrefix(problems[0].Message, "unbuildableSample cannot be built: ") {
		t.Fatalf("Packages = %v; want one problem", err)
	}
	t.Log(err)
}

func TestLabDryRunLeavesTheStoreAlone(t *testing.T) {
	req := labRequest(t, "unbuildableSample", "git")
	req.DryRun = true
	res, err := resolve.Packages(t.Context(), req)
	if err != nil || !slices.Equal(res.Missing, []string{"unbuildableSample"}) {
		t.Errorf("Packages = %+v, %v; want the first missing", res.Packages, err)
	}
}

func BenchmarkLabWarmManifest(b *testing.B) {
	file := manifestFile(b)
	req := labRequest(b, "git", "jq", "ripgrep")
	b.ReportAllocs()
	for b.Loop() {
		f, err := os.Open(file)
		must.Do(b, err)
		if req.Manifest, err = resolve.ReadManifest(f); err != nil {
			b.Fatal(err)
		}
		f.Close()
		if _, err := resolve.Packages(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}

// From the cache, with a new connection for each: what a launch pays whose
// packages are not the manifest's.
func BenchmarkLabCached(b *testing.B) {
	first := labRequest(b, "hello", "manyOutputsSample")
	if _, err := resolve.Packages(b.Context(), first); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		store := &nixdaemon.Client{Socket: need(b, "CLAUDEBOX_LAB_SOCKET")}
		first.Store = store
		if _, err := resolve.Packages(b.Context(), first); err != nil {
			b.Fatal(err)
		}
		store.Close()
	}
}

// meddler is a Store whose packages a garbage collector is after at every
// step. Deleting one path asks it the same question as a whole run.
type meddler struct {
	resolve.Store
	t     *testing.T
	paths []string
	taken int
}

func (m *meddler) collect() {
	for _, path := range m.paths {
		if _, err := trial.Delete(path); err == nil {
			m.taken++
		}
	}
}

func (m *meddler) Pin(ctx context.Context, paths []string) ([]string, error) {
	m.collect()
	defer m.collect()
	return m.Store.Pin(ctx, paths)
}

func (m *meddler) Realise(ctx context.Context, targets []string) (map[string]error, error) {
	m.collect()
	defer m.collect()
	return m.Store.Realise(ctx, targets)
}

func TestLabTheGarbageCollectorTakesNothingThatIsUsed(t *testing.T) {
	first := labRequest(t, "sampleSet.hello", "manyOutputsSample^*")
	res, err := resolve.Packages(t.Context(), first)
	must.Do(t, err)
	first.Store.(*nixdaemon.Client).Close()

	m := &meddler{t: t}
	for _, p := range res.Packages[:2] {
		for _, o := range p.Outputs {
			m.paths = append(m.paths, o.Path)
		}
	}
	second := labRequest(t, "sampleSet.hello", "manyOutputsSample^*")
	second.Cache = first.Cache
	m.Store, second.Store = second.Store, m
	if _, err := resolve.Packages(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	m.collect()
	for _, path := range m.paths {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("%s was taken", path)
		}
	}
	if m.taken == 0 {
		t.Log("somebody else holds the packages, so nothing was there to take")
	}
}

// Many launches begin at once, with one cache.
func TestLabManyAtOnce(t *testing.T) {
	first := labRequest(t, "sampleSet.hello")
	var all sync.WaitGroup
	for range 60 {
		all.Go(func() {
			req := first
			store := &nixdaemon.Client{Socket: need(t, "CLAUDEBOX_LAB_SOCKET")}
			defer store.Close()
			req.Store = store
			if res, err := resolve.Packages(t.Context(), req); err != nil || res.Packages[0].Attr != "sampleSet.hello" {
				t.Errorf("Packages = %v, %v", res.Packages, err)
			}
		})
	}
	all.Wait()
}
