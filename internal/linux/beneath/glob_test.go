package beneath_test

import (
	"os"
	"slices"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/beneath"
)

// An agent writes many patterns, and many files: each pattern took a walk of its own.
func TestManyPatternsReadAFolderOnce(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/b", "c/.git"} {
		must.Do(t, os.MkdirAll(dir+"/"+name, 0o755))
	}
	file := func(name string) { must.Write(t, dir+"/"+name, "") }
	file("a/x")
	file("a/b/x")
	file("c/.git/x")
	tree, err := beneath.Open(dir)
	must.Do(t, err)
	defer tree.Close()
	g := beneath.NewGlobber(tree)
	want := func(g *beneath.Globber, pattern string, want ...string) {
		t.Helper()
		got, err := g.Glob(pattern)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v; want %q", pattern, got, err, want)
		}
	}
	want(g, "**/x*", "a/b/x", "a/x")
	file("a/y") // not seen by one that has read the folder
	want(g, "*/[xy]", "a/x")
	want(g, "a/**", "a")
	want(beneath.NewGlobber(tree), "*/[xy]", "a/x", "a/y")
}
