package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/agent"
)

// An editor calls its wrapper with a program. What a person types is a prompt, whatever files there are.
func TestCalledIsAProgramAndNoPrompt(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, mode := range map[string]os.FileMode{
		"native-binary/claude": 0o755, "versions/claude/versions/2.1.330": 0o755, "claude-code/cli.js": 0o644, "bin/node": 0o755,
		"other/cli.js": 0o644, "tools/build": 0o755, "src/main.go": 0o644, "store/bin/.claude-wrapped": 0o755, "npm/claude.exe": 0o755,
		"bin/codex": 0o755, "with blank/claude": 0o755,
	} {
		must.Do(t, os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, nil, mode))
	}
	must.Do(t, os.Symlink("../versions/claude/versions/2.1.330", "bin/latest"), os.Mkdir("claude", 0o755))
	for name, tc := range map[string]struct {
		words string // with commas between; {} is the folder
		used  int
		agent string // that it is; empty: none that is known
	}{
		"the extension's program":          {"{}/native-binary/claude,--output-format,stream-json", 1, "claude"},
		"a folder with a blank":            {"{}/with blank/claude,-p", 1, "claude"},
		"the installer's program":          {"{}/versions/claude/versions/2.1.330", 1, "claude"},
		"a link to it":                     {"{}/bin/latest,-p", 1, "claude"},
		"npm's program":                    {"{}/npm/claude.exe", 1, "claude"},
		"what nixpkgs has wrapped":         {"{}/store/bin/.claude-wrapped", 1, "claude"},
		"a relative path":                  {"native-binary/claude", 1, "claude"},
		"node and the script":              {"node,{}/claude-code/cli.js,--verbose", 2, "claude"},
		"a node by its path":               {"{}/bin/node,{}/claude-code/cli.js", 2, "claude"},
		"another agent":                    {"{}/bin/codex,app-server", 1, "codex"},
		"another program":                  {"{}/tools/build,--all", 1, ""},
		"a relative path of a program":     {"tools/build,is,slow", 0, ""},
		"a file that is no program":        {"{}/src/main.go", 0, ""},
		"a folder":                         {"{}/claude", 0, ""},
		"a name without a slash":           {"claude,-p", 0, ""},
		"a file that is not there":         {"{}/nothing/claude", 0, ""},
		"a command of the agent's":         {"/init", 0, ""},
		"a sentence with a path":           {"fix {}/native-binary/claude", 0, ""},
		"words with a path behind":         {"explain,{}/claude-code/cli.js", 0, ""},
		"node and a script of another one": {"node,{}/other/cli.js", 0, ""},
		"nothing":                          {"", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			program, used := agent.Called(strings.Split(strings.ReplaceAll(tc.words, "{}", dir), ","))
			if used != tc.used {
				t.Fatalf("%d words name %q; want %d", used, program, tc.used)
			}
			for _, name := range []string{"claude", "codex"} {
				if got := used > 0 && agent.Is(program, name); got != (tc.agent == name) {
					t.Errorf("%s is %s: %t", program, name, got)
				}
			}
		})
	}
}
