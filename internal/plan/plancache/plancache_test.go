package plancache

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/plan"
)

// aCache is a cache that is asked a moment after the files were written, with
// a plan kept in it that was made of a profile and of an absent one.
func aCache(t *testing.T) (Cache, plan.Plan, string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"profile.yaml", "store"} {
		must.Write(t, filepath.Join(dir, name), "content")
	}
	p := plan.Plan{
		Version: 1, Profile: "p", Path: []string{"/a", ""},
		Pins:   plan.Pins{Tools: []plan.Tool{{Name: "bwrap", Path: filepath.Join(dir, "store")}}},
		Mounts: []plan.Mount{{Kind: plan.Tmpfs, Destination: "/", Size: 1 << 40, Optional: true}},
	}
	c := Cache{filepath.Join(dir, "cache/plan")}
	time.Sleep(30 * time.Millisecond) // or another change of them might not be seen
	seen := &FileStates{}
	seen.Add(filepath.Join(dir, "profile.yaml"))
	seen.Add(filepath.Join(dir, "earlier.yaml"))
	seen.Add(filepath.Join(dir, "absent/earlier.yaml"))
	c.Keep(p, []string{"/nix/store/r"}, *seen)
	return c, p, dir
}

func TestAKeptPlanIsTheVeryPlan(t *testing.T) {
	c, want, _ := aCache(t)
	kept, found := c.Find()
	got := kept.Plan
	if !found || !slices.Equal(kept.Roots, []string{"/nix/store/r"}) || !reflect.DeepEqual(got, want) || !bytes.Equal(got.Encode(), want.Encode()) {
		t.Errorf("found %v, got %+v, want %+v", found, got, want)
	}
}

func TestAKeptPlanCountsOnlyWhileAllIsAsItWas(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, c *Cache, dir string){
		"its profile is written":           func(t *testing.T, _ *Cache, dir string) { must.Write(t, dir+"/profile.yaml", "CONTENT") },
		"its profile gets other rights":    func(t *testing.T, _ *Cache, dir string) { must.Do(t, os.Chmod(dir+"/profile.yaml", 0o400)) },
		"its profile is removed":           func(t *testing.T, _ *Cache, dir string) { must.Do(t, os.Remove(dir+"/profile.yaml")) },
		"a profile comes that goes before": func(t *testing.T, _ *Cache, dir string) { must.Write(t, dir+"/earlier.yaml", "") },
		"one comes in a folder that was not there": func(t *testing.T, _ *Cache, dir string) {
			must.Do(t, os.Mkdir(dir+"/absent", 0o700))
			must.Write(t, dir+"/absent/earlier.yaml", "")
		},
		"a store path is gone":              func(t *testing.T, _ *Cache, dir string) { must.Do(t, os.Remove(dir+"/store")) },
		"a bit of it has flipped":           func(t *testing.T, c *Cache, _ string) { flip(t, c.file) },
		"it was cut short":                  func(t *testing.T, c *Cache, _ string) { must.Do(t, os.Truncate(c.file, 60)) },
		"it is empty":                       func(t *testing.T, c *Cache, _ string) { must.Do(t, os.Truncate(c.file, 0)) },
		"others may write it":               func(t *testing.T, c *Cache, _ string) { must.Do(t, os.Chmod(c.file, 0o666)) },
		"there is no cache for the program": func(_ *testing.T, c *Cache, _ string) { c.file = "" },
	} {
		t.Run(name, func(t *testing.T) {
			c, _, dir := aCache(t)
			change(t, &c, dir)
			if k, found := c.Find(); found {
				t.Errorf("found %+v", k)
			}
		})
	}
}

func TestNothingIsKeptOfFilesThatWereJustWritten(t *testing.T) {
	c, p, dir := aCache(t)
	must.Do(t, os.Remove(c.file))
	must.Write(t, dir+"/profile.yaml", "another")
	seen := &FileStates{}
	seen.Add(dir + "/profile.yaml")
	c.Keep(p, []string{"/nix/store/r"}, *seen)
	if _, found := c.Find(); found {
		t.Error("found one")
	}
}

func TestAPlanHoldsWhateverElseComesToTheStore(t *testing.T) {
	c, _, dir := aCache(t)
	must.Write(t, dir+"/another", "")
	if _, found := c.Find(); !found {
		t.Error("found none")
	}
}

func flip(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	must.Do(t, err)
	content[len(content)-1] ^= 1
	must.Write(t, file, string(content))
}
