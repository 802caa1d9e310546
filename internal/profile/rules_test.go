package profile_test

import (
	"regexp"
	"testing"

	"claudebox/internal/profile"
	"claudebox/internal/profile/shape"
)

// rules are all rules of the schema, by their pattern.
func rules() map[string]*shape.Rule {
	found := map[string]*shape.Rule{}
	collectRules(profile.Schema(), found)
	return found
}

func collectRules(s *shape.Shape, found map[string]*shape.Rule) {
	if s.Rule != nil && s.Rule.Pattern != "" {
		found[s.Rule.Pattern] = s.Rule
	}
	if s.Elem != nil {
		collectRules(s.Elem, found)
	}
	for _, key := range s.Keys {
		collectRules(key.Shape, found)
	}
}

func TestEveryRuleTakesItsExamples(t *testing.T) {
	if len(rules()) < 10 {
		t.Fatalf("only %d rules found", len(rules()))
	}
	for pattern, rule := range rules() {
		for _, example := range rule.Examples {
			if fault := rule.Check(example); fault != nil {
				t.Errorf("%s: its example %q: %s", rule.Name, example, fault.Message)
			}
			if !regexp.MustCompile(pattern).MatchString(example) {
				t.Errorf("%s: its example %q does not match %s", rule.Name, example, pattern)
			}
		}
	}
}

// exact are the rules whose patterns tell editors the whole rule.
var exact = []string{"a profile name", "the name of a program", "the name of an MCP server", "a package"}

// FuzzRules holds each pattern to its check: editors take whatever the
// decoder takes, and the exact ones nothing else.
func FuzzRules(f *testing.F) {
	for _, seed := range []string{"", "work", "a.b", "~", "~/x", "./x", "/x", "*.a.org:443", "a^b,c", "../x*", "a\nb", "A=b", "é", "x\n", "-", "path:/nix/store/00000000000000000000000000000000-source"} {
		f.Add(seed)
	}
	all := rules()
	patterns := map[string]*regexp.Regexp{}
	for pattern := range all {
		patterns[pattern] = regexp.MustCompile(pattern)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for pattern, rule := range all {
			takes, matches := rule.Check(text) == nil, patterns[pattern].MatchString(text)
			if takes && !matches {
				t.Errorf("%s: %q is taken and does not match %s", rule.Name, text, pattern)
			}
			for _, name := range exact {
				if rule.Name == name && matches && !takes {
					t.Errorf("%s: %q matches %s and is refused", rule.Name, text, pattern)
				}
			}
		}
	})
}

func TestPackagesAndReferencesThatAreRight(t *testing.T) {
	const rev = "391b592eb44808b3bd0cb80bb71b63a5a118b8bb"
	for _, ref := range []string{
		"pinned", "/nix/store/00000000000000000000000000000000-source", "path:/nix/store/00000000000000000000000000000000-source",
		"github:NixOS/nixpkgs/" + rev, "git+https://example.org/nixpkgs?ref=main&rev=" + rev,
		"https://example.org/x.tar.gz?narHash=sha256-WvvHR4kSQLAbtouMC/ruZ5UpLwlUcY3K4FAllMN+yGk=",
	} {
		if p, _ := parse(t, "nixpkgs: "+ref); p.Nixpkgs != ref {
			t.Errorf("%q became %q", ref, p.Nixpkgs)
		}
	}
	for ref, want := range map[string][]string{
		"_1password": nil, "nodejs_22": nil, "a'": nil, "x^*": {"*"}, "x^out,dev-1": {"out", "dev-1"}, "haskell.packages.ghc98.foo": nil,
	} {
		p, _ := parse(t, `packages: ["`+ref+`"]`)
		if got := p.Packages[0].Outputs; len(got) != len(want) {
			t.Errorf("outputs of %s: %q, want %q", ref, got, want)
		}
	}
}
