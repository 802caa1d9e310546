package storepath_test

import (
	"slices"
	"strings"
	"testing"

	gonix "github.com/nix-community/go-nix/pkg/storepath"

	"claudebox/internal/nix/storepath"
)

const hash = "00bgd045z0d4icpbc2yyz4gx48ak44la"

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		path string
		ok   bool
	}{
		"takes a plain path":                    {"/nix/store/" + hash + "-hello-2.12", true},
		"takes every character a name may hold": {"/nix/store/" + hash + "-aZ0+-._?=", true},
		"takes a name of 211 characters":        {"/nix/store/" + hash + "-" + strings.Repeat("a", 211), true},
		"refuses one of 212":                    {"/nix/store/" + hash + "-" + strings.Repeat("a", 212), false},
		"refuses another store":                 {"/gnu/store/" + hash + "-hello", false},
		"refuses a store with a longer name":    {"/nix/storeX/" + hash + "-hello", false},
		"refuses the store itself":              {"/nix/store", false},
		"refuses a path without a name":         {"/nix/store/" + hash + "-", false},
		"refuses a path without a dash":         {"/nix/store/" + hash + "hello", false},
		"refuses a letter outside base32":       {"/nix/store/e" + hash[1:] + "-hello", false},
		"refuses an upper case hash":            {"/nix/store/" + strings.ToUpper(hash) + "-hello", false},
		"refuses a name with a leading dot":     {"/nix/store/" + hash + "-.hello", false},
		"refuses a file below a store path":     {"/nix/store/" + hash + "-hello/bin", false},
		"refuses a climb":                       {"/nix/store/" + hash + "-../etc", false},
		"refuses a new line":                    {"/nix/store/" + hash + "-a\nb", false},
		"refuses a letter beyond ASCII":         {"/nix/store/" + hash + "-é", false},
		"refuses nothing":                       {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := storepath.Check(tc.path); (err == nil) != tc.ok {
				t.Errorf("Check(%q) = %v; want ok %t", tc.path, err, tc.ok)
			}
		})
	}
}

func TestOf(t *testing.T) {
	for name, tc := range map[string]struct{ file, want string }{
		"keeps a store path":         {"/nix/store/" + hash + "-a", "/nix/store/" + hash + "-a"},
		"cuts a program off":         {"/nix/store/" + hash + "-a/bin/a", "/nix/store/" + hash + "-a"},
		"refuses a file of the host": {"/usr/bin/a", ""},
		"refuses a link farm":        {"/nix/store/.links/" + hash, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := storepath.Of(tc.file); got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("Of(%q) = %q, %v; want %q", tc.file, got, err, tc.want)
			}
		})
	}
}

func TestName(t *testing.T) {
	if got := storepath.Name("/nix/store/" + hash + "-hello-2.12"); got != "hello-2.12" {
		t.Errorf("Name = %q; want hello-2.12", got)
	}
}

// What is accepted is exactly what go-nix's pattern accepts, but for the
// length that the pattern does not know.
func FuzzCheck(f *testing.F) {
	f.Add("/nix/store/" + hash + "-hello-2.12")
	f.Add("/nix/store/" + hash + "-.x")
	f.Fuzz(func(t *testing.T, path string) {
		m := gonix.PathRe.FindStringSubmatch(path)
		want := m != nil && len(m[2]) <= 211
		if err := storepath.Check(path); (err == nil) != want {
			t.Errorf("Check(%q) = %v; the pattern says %t", path, err, want)
		}
	})
}

func TestStorePathsAreFoundInAText(t *testing.T) {
	const a, b = "/nix/store/00000000000000000000000000000000-a", "/nix/store/11111111111111111111111111111111-b-1.0"
	for text, want := range map[string][]string{
		"":                              nil,
		"/nix/store/and no path":        nil,
		a:                               {a},
		"--with=" + b + "/lib:" + a:     {b, a},
		a + "/nix/store/too-short/" + b: {a, b},
	} {
		if got := storepath.In(text); !slices.Equal(got, want) {
			t.Errorf("In(%q) = %q, want %q", text, got, want)
		}
	}
}
