package branch

import (
	"slices"
	"testing"
)

func TestWhatBecomesOfWhatIsIgnored(t *testing.T) {
	l := Limits{Files: 10, Bytes: 100, File: 1000, Parts: 5}
	for name, tc := range map[string]struct {
		e      Entry
		hidden []string
		limits Limits
		want   How
	}{
		"a small folder":              {Entry{Path: "d", Kind: Folder, Files: 10, Bytes: 100}, nil, l, Copied},
		"a folder of many files":      {Entry{Path: "d", Kind: Folder, Files: 11}, nil, l, Overlaid},
		"a large folder":              {Entry{Path: "d", Kind: Folder, Bytes: 101}, nil, l, Overlaid},
		"one where no layer can be":   {Entry{Path: "d", Kind: Folder, Bytes: 101}, nil, Limits{Files: 10, Bytes: 100, Parts: 5, NoOverlays: "why"}, LeftOut},
		"a file":                      {Entry{Path: "f", Kind: File, Bytes: 1000}, nil, l, Copied},
		"a huge file":                 {Entry{Path: "f", Kind: File, Bytes: 1001}, nil, l, LeftOut},
		"a secret":                    {Entry{Path: ".env", Kind: File}, []string{".env"}, l, Covered},
		"a file below a secret":       {Entry{Path: ".aws/x", Kind: File}, []string{".aws"}, l, Covered},
		"a large secret folder":       {Entry{Path: ".aws", Kind: Folder, Files: 100}, []string{".aws"}, l, Covered},
		"one with a name of the kind": {Entry{Path: ".envs", Kind: File}, []string{".env"}, l, Copied},
		"a link":                      {Entry{Path: "l", Kind: Link}, nil, l, Copied},
		"a repository":                {Entry{Path: "r", Kind: Folder, Nested: true}, nil, l, LeftOut},
		"a socket":                    {Entry{Path: "s"}, nil, l, LeftOut},
		"one too many":                {Entry{Path: "f", Kind: File}, nil, Limits{}, LeftOut},
	} {
		if got := decide([]Entry{tc.e}, tc.hidden, tc.limits)[0].How; got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestPathsThatAreNotPlain(t *testing.T) {
	for _, at := range []string{"", "/x", "../x", "a/../b", ".git", "a/.GIT/x", "a//b", "."} {
		if isPlain(at) {
			t.Errorf("%q", at)
		}
	}
	if !isPlain("a/.gitignore") {
		t.Error("a plain path is none")
	}
}

func TestWhatToolsObeyOfChangesComesFirst(t *testing.T) {
	got := obeyed(":000000 100644 0 1 A\x00Makefile\x00:000000 100644 0 1 A\x00plain\x00:000000 120000 0 1 A\x00.husky\x00:000000 100644 0 1 A\x00.envrc\x00")
	if want := []string{".husky", ".envrc", "Makefile"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
