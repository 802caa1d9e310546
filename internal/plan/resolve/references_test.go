package resolve

import (
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

func TestClosuresFollowReferences(t *testing.T) {
	const store = "/nix/store/00000000000000000000000000000000-"
	a, b, c, d := store+"a", store+"b", store+"c", store+"d"
	references, err := ReadReferences(strings.NewReader(strings.Join([]string{a + " " + b, b + " " + b + " " + c, c + " " + a, d}, "\n") + "\n"))
	must.Do(t, err)
	for name, tc := range map[string]struct {
		roots, want []string
		known       bool
	}{
		"round a circle once":        {[]string{b}, []string{a, b, c}, true},
		"a path that refers to none": {[]string{d}, []string{d}, true},
		"several roots, sorted":      {[]string{d, c}, []string{a, b, c, d}, true},
		"no roots":                   {nil, nil, true},
		"a path that nobody knows":   {[]string{d, store + "e"}, nil, false},
	} {
		got, known := references.Closure(tc.roots)
		if known != tc.known || !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, %t; want %q, %t", name, got, known, tc.want, tc.known)
		}
	}
}

func TestReferencesToWhatIsNoStorePathAreRefused(t *testing.T) {
	for _, text := range []string{"/etc/passwd\n", "/nix/store/00000000000000000000000000000000-a /nix/store/../etc\n", strings.Repeat("x", 2<<20)} {
		if _, err := ReadReferences(strings.NewReader(text)); err == nil {
			t.Errorf("%.40q is taken", text)
		}
	}
}
