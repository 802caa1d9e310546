package hostrun

import (
	"path"
	"strings"
	"testing"
)

func TestWhatTheHostRuns(t *testing.T) {
	for rel, want := range map[string]bool{
		"package.json": true, "apps/web/package.json": true, ".github/workflows/x.yml": true, "vendor/.github/workflows/x.yml": true,
		"workflows/x.yml": false, ".github/x.yml": false, ".vscode/tasks.json": true, "a/.vscode/deep/er": true, ".vscode": false,
		".cargo/config.toml": true, "config.toml": false, "cargo/config.toml": false, ".claude/settings.json": true,
		".claude/worktrees/x/main.go": false, ".claude/worktrees/x/Makefile": true, "main.go": false, ".envrc": true, ".envrcx": false,
		".husky/pre-commit": true, "settings.json": false,
	} {
		if got := Means(rel) != ""; got != want {
			t.Errorf("Means(%q) %v, want %v", rel, got, want)
		}
		if got := In(path.Dir(rel))([]byte(path.Base(rel))); got != want {
			t.Errorf("In(%q) %v, want %v", rel, got, want)
		}
	}
}

func TestEveryRuleFindsItsOwn(t *testing.T) {
	for _, line := range table {
		for _, pattern := range strings.Fields(line.held + " " + line.told) {
			name, below := strings.CutSuffix(pattern, "/**")
			if below {
				name += "/x"
			}
			if Means(name) != line.means || Means("a/"+name) != line.means {
				t.Errorf("%s: %q, and in a folder %q; want %q", pattern, Means(name), Means("a/"+name), line.means)
			}
		}
	}
}

func BenchmarkIn(b *testing.B) {
	in, name := In("src/deep"), []byte("some_file_x.go")
	for b.Loop() {
		in(name)
	}
}
