package project_test

import (
	"slices"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/workspace/project"
)

func TestRepositoriesInTheProjectAreProtected(t *testing.T) {
	w := newWorld(t)
	w.repo("p/deep/er/a", "x")
	w.repo("p/node_modules/b", "x")
	p := w.open("p")
	at := func(name string) project.Mode {
		for _, m := range p.Mounts {
			if m.Path == w.path(name) {
				return m.Mode
			}
		}
		return ""
	}
	for name, want := range map[string]project.Mode{
		"p/deep/er/a/.git":         project.Inner,
		"p/deep/er/a":              project.Pin,
		"p/deep":                   project.Pin,
		"p/deep/er/a/.git/config":  "",
		"p/node_modules/b/.git":    "",
		"p/deep/er/a/.git/objects": "",
	} {
		if got := at(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestBelowAHiddenFolderNothingIsMounted(t *testing.T) {
	w := newWorld(t)
	w.repo("p", "x")
	w.repo("p/secrets/repo", "x")
	w.write("p/secrets/a.key", "SECRET")
	w.write("p/secrets2/a.key", "SECRET")
	req := w.request("p")
	req.Hide = []string{"secrets/**"}
	p, err := project.Open(req)
	must.Do(t, err)
	want := []string{"inner ~/p/.git", "hidden ~/p/secrets", "pin ~/p/secrets2", "hidden ~/p/secrets2/a.key"}
	if got := w.mounts(p); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
