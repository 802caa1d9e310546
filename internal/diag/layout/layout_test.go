package layout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrap(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"breaks at blanks":               {"one two three four", []string{"one two", "three four"}},
		"keeps a long word whole":        {"a /a/very/long/path b", []string{"a", "/a/very/long/path", "b"}},
		"keeps a command whole":          {"run `nix store gc` now", []string{"run", "`nix store gc`", "now"}},
		"counts characters, not bytes":   {"äöü äöü äöü", []string{"äöü äöü", "äöü"}},
		"gives one empty line for none":  {"", []string{""}},
		"drops blanks beyond the first":  {"  a   b ", []string{"a b"}},
		"ends with an unclosed backtick": {"a `b c", []string{"a `b c"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Wrap(tc.text, 10)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestShortenKeepsBothEnds(t *testing.T) {
	for s, want := range map[string]string{"short": "short", "0123456789abcdef": "012…abcdef", "äöüäöüäöüäöü": "äöü…äöüäöü"} {
		if got := Shorten(s, 10); got != want {
			t.Errorf("Shorten(%q) = %q, want %q", s, got, want)
		}
	}
}

func TestPath(t *testing.T) {
	const hash = "0123456789abcdfghijklmnpqrsvwxyz"
	for path, want := range map[string]string{
		"/home/u":                           "~",
		"/home/u/x":                         "~/x",
		"/home/user":                        "/home/user",
		"/nix/store/" + hash + "-git/bin/x": "/nix/store/0123…-git/bin/x",
		"/nix/store/short-git":              "/nix/store/short-git",
	} {
		if got := Path("/home/u", path); got != want {
			t.Errorf("Path(%q) = %q, want %q", path, got, want)
		}
	}
	if got := Path("", "/home/u"); got != "/home/u" {
		t.Errorf("without a home, got %q", got)
	}
}
