// Package gen has the table of package leak made by a test, from the rules of gitleaks (MIT, see LICENSE.gitleaks;
// gitleaks.toml is its file as released, v8.30.1) and from a few of our own. It takes those of gitleaks' rules that
// recognise a token by its beginning; the others look for a name next to it, and package leak judges names itself.
// Nothing of it is in the program.
package gen

import (
	"slices"
	"testing"

	"claudebox/checks/kit/golden"
	"claudebox/checks/kit/must"
)

// TestTheTableIsFresh compares the table of package leak with what the rules make.
func TestTheTableIsFresh(t *testing.T) {
	table, err := generate(must.Read(t, "gitleaks.toml"), own)
	must.Do(t, err)
	golden.Compare(t, "../table.go", table)
}

func TestBeginningsOfAnExpression(t *testing.T) {
	for expr, want := range map[string][]string{
		`\b(ghp_[0-9a-z]{36})`:      {"ghp_"},
		`(?:ghu|ghs)_[0-9a-zA-Z]+`:  {"ghs_", "ghu_"},
		`(?i)SG\.x`:                 {"sg.x"},
		`xox[ar]-(?:\d-)?[0-9]{8}`:  {"xoxa-", "xoxr-"},
		`\b((?:A3T[A-Z0-9]|AKIA)X)`: {"a3t", "akia"},
		`x[0-9]`:                    nil, // one letter
		`[a-z]{20}`:                 nil,
		`(?:ab)?cd`:                 nil,
		`.*secret`:                  nil,
	} {
		got, err := beginnings(expr)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("beginnings(%q) = %q, %v; want %q", expr, got, err, want)
		}
	}
}

func TestARuleThatCannotBeReadIsRefused(t *testing.T) {
	for _, toml := range []string{"[[rules]]\nid = \"x\"\nregex = '''('''\n", "[[rules]]\nentropy = 1.2.3\n"} {
		if _, err := generate(toml, nil); err == nil {
			t.Errorf("%q passed", toml)
		}
	}
}
