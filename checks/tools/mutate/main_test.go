package main

import (
	"os"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// A break whose line is gone protects nothing: who changes the line changes
// the table.
func TestEveryBreakAppliesAndNamesATest(t *testing.T) {
	t.Chdir("../../..")
	breaks, err := parse(table)
	must.Do(t, err)
	names := map[string]bool{}
	for _, b := range breaks {
		if text, err := b.apply(); err != nil {
			t.Errorf("%s: %s: %v", b.name, b.file, err)
		} else if before, err := os.ReadFile(b.file); err != nil || text == string(before) {
			t.Errorf("%s: it changes nothing", b.name)
		}
		if names[b.name] {
			t.Errorf("%s stands there twice", b.name)
		}
		names[b.name] = true
		for expr := range strings.SplitSeq(b.test, "|") {
			test, _, inner := strings.Cut(expr, "/")
			if !hasTest(t, b.pkg, strings.TrimSuffix(test, "$")) {
				t.Errorf("%s: there is no %s in %s", b.name, test, b.pkg)
			}
			if inner {
				break // what follows may be an expression of its own
			}
		}
	}
}

func hasTest(t *testing.T, pkg, test string) bool {
	t.Helper()
	files, err := os.ReadDir(pkg)
	if err != nil || !strings.HasPrefix(test, "Test") {
		return false
	}
	for _, f := range files {
		if content, err := os.ReadFile(pkg + "/" + f.Name()); err == nil && strings.Contains(string(content), "func "+test) {
			return true
		}
	}
	return false
}
