package nixeval_test

import (
	"slices"
	"testing"

	"claudebox/internal/nix/nixeval"
)

func TestNearest(t *testing.T) {
	for name, tc := range map[string]struct {
		typed       string
		names, want []string
	}{
		"finds a letter left out":            {"ripgre", []string{"ripgrep", "grep"}, []string{"ripgrep"}},
		"finds two letters swapped, first":   {"jqp", []string{"jpq", "jqpx", "abc"}, []string{"jpq", "jqpx"}},
		"finds another case":                 {"python3packages", []string{"python3Packages"}, []string{"python3Packages"}},
		"gives three at most":                {"abcd", []string{"abce", "abcf", "abcg", "abch"}, []string{"abce", "abcf", "abcg"}},
		"does not guess for a single letter": {"q", []string{"jq", "r"}, nil},
		"does not guess half of a word":      {"gooo", []string{"foot", "go"}, nil},
		"gives nothing for nothing near":     {"kubectl", []string{"hello"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := nixeval.Nearest(tc.typed, tc.names); !slices.Equal(got, tc.want) {
				t.Errorf("Nearest(%q) = %q; want %q", tc.typed, got, tc.want)
			}
		})
	}
}
