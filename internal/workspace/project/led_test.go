package project_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestALinkWithTheNameOfAFolderOfSecrets: what it leads to is hidden as it would be in a folder of this name.
func TestALinkWithTheNameOfAFolderOfSecrets(t *testing.T) {
	for name, tc := range map[string]struct {
		links map[string]string
		files []string
		want  []string
	}{
		"settings":             {map[string]string{"secrets": "notes"}, []string{"notes/a.yml", "notes/deep/b.txt", "notes/c.go"}, []string{"notes/a.yml", "notes/deep/b.txt"}},
		"all":                  {map[string]string{"x/.ssh": "../notes"}, []string{"notes/c.go"}, []string{"notes/c.go"}},
		"one file":             {map[string]string{".docker": "notes"}, []string{"notes/config.json", "notes/other.json"}, []string{"notes/config.json"}},
		"a chain":              {map[string]string{"secrets": "l", "l": "m", "m": "a/notes"}, []string{"a/notes/x.yml"}, []string{"a/notes/x.yml"}},
		"below such a folder":  {map[string]string{"secrets/prod.d": "../notes"}, []string{"notes/x.yml"}, []string{"notes/x.yml"}},
		"a link behind a link": {map[string]string{"secrets": "notes", "notes/more.d": "../others"}, []string{"others/x.yml"}, []string{"others/x.yml"}},
		"a file behind both":   {map[string]string{"secrets": "notes", "notes/x.yml": "../others/y"}, []string{"notes/n", "others/y"}, []string{"notes/n", "others/y"}},
		"round a circle":       {map[string]string{"a/secrets": "../a", "a/b.d": "../a"}, []string{"a/x.yml"}, []string{"a"}},
		"the project":          {map[string]string{"a/secrets": ".."}, []string{"x.yml"}, nil},
		"git's":                {map[string]string{"secrets": ".git"}, nil, nil},
		"of any name":          {map[string]string{"docs": "notes"}, []string{"notes/x.yml"}, nil},
		"what is tracked":      {map[string]string{"secrets": "tracked"}, nil, []string{"tracked/changed.yml"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("p/tracked/same.yml", "x")
			w.write("p/tracked/changed.yml", "x")
			w.git("p", "init", "-q")
			w.git("p", "add", ".")
			w.write("p/tracked/changed.yml", "y")
			for at, to := range tc.links {
				w.link(to, "p/"+at)
			}
			for _, file := range tc.files {
				w.write("p/"+file, "x")
			}
			p := w.open("p")
			if strings.Contains(notes(p), "too many") {
				t.Error(notes(p))
			}
			if !slices.Equal(p.Hidden, tc.want) {
				t.Errorf("hidden %q, want %q", p.Hidden, tc.want)
			}
			for _, rel := range tc.want {
				if !slices.Contains(p.Stay, rel) {
					t.Errorf("%s is not hidden without the link: %q", rel, p.Stay)
				}
			}
		})
	}
}

func TestLinksWithTheNamesOfFoldersOfSecretsAreNotWithoutEnd(t *testing.T) {
	w := newWorld(t)
	for n := range 101 {
		w.mkdir(fmt.Sprint("p/notes/", n))
		w.link(fmt.Sprint("../notes/", n), fmt.Sprint("p/", n, "/secrets"))
	}
	if got := notes(w.open("p")); !strings.Contains(got, "too many folders") {
		t.Error(got)
	}
}
