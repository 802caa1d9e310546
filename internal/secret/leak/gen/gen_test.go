package main

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"claudebox/checks/kit/must"
)

func TestTheCommittedTableIsWhatTheRulesMake(t *testing.T) {
	want, err := generate(gitleaks, own)
	must.Do(t, err)
	got, err := os.ReadFile("../table.go")
	must.Do(t, err)
	if !bytes.Equal(got, want) {
		t.Error("table.go is stale: run go generate ./internal/leak")
	}
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
