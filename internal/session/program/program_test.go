package program

import (
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/agent/editor"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/view"
	"claudebox/internal/session/planning"
)

func TestWhatSpeaksWithAnEditor(t *testing.T) {
	const stream = "--output-format stream-json --verbose --input-format stream-json"
	for name, tc := range map[string]struct {
		agent, command, words, shell string
		want                         editor.Protocol
	}{
		"Claude Code at a terminal":       {"claude", "", "", "", ""},
		"a prompt that speaks of it":      {"claude", "", "-p acp", "", ""},
		"output that a script reads":      {"claude", "", "-p x --output-format stream-json", "", ""},
		"an extension":                    {"claude", "", stream, "", editor.Stream},
		"with equals signs":               {"claude", "", "--input-format=stream-json --output-format=stream-json", "", editor.Stream},
		"an extension, by a wrapper":      {"claude", "/opt/claude-wrapper", stream, "", editor.Stream},
		"an extension, in a command":      {"claude", "", "", "claude " + stream, editor.Stream},
		"the adapter":                     {"claude", "claude-agent-acp", "", "", editor.ACP},
		"the adapter by its path":         {"claude", "~/bin/claude-code-acp", "", "", editor.ACP},
		"a package that npx runs":         {"npx", "npx -y @agentclientprotocol/claude-agent-acp@0.101.0", "", "", editor.ACP},
		"a script of its package":         {"node", "node /opt/claude-agent-acp/dist/index.js", "", "", editor.ACP},
		"the adapter in a command":        {"claude", "", "", "claude-agent-acp", editor.ACP},
		"a command in an adapter's place": {"claude", "claude-agent-acp", "", "bash", ""},
		"another agent's flag":            {"gemini", "", "--experimental-acp", "", editor.ACP},
		"another agent's command":         {"opencode", "", "acp", "", editor.ACP},
		"another adapter":                 {"codex-acp", "codex-acp", "", "", editor.ACP},
		"another adapter by its name":     {"codex-acp", "", "", "", editor.ACP},
		"another agent at a terminal":     {"gemini", "", "-p capacity", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := Request{
				Call: planning.Call{Options: planning.Options{Words: strings.Fields(tc.words)}, Purpose: planning.Purpose{Command: strings.Fields(tc.shell)}},
				Plan: plan.Plan{Agent: plan.Agent{Name: tc.agent, Command: strings.Fields(tc.command)}},
			}
			if got := r.Protocol(); got != tc.want {
				t.Errorf("it speaks %q; want %q", got, tc.want)
			}
		})
	}
}

// What a flag of the agent's names is said where it is not inside, whoever wrote the flag: the user, the profile, or a
// wrapper that starts the agent's program. Once it is mounted nothing is said.
func TestPathsAmongTheAgentsWordsAreNamedWhereTheyAreNotInside(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.json", "b.json", "p/c.json"} {
		must.Write(t, filepath.Join(dir, name), "")
	}
	inside := view.Of([]launch.Mount{
		{Kind: plan.Tmpfs, Destination: "/"},
		{Kind: plan.Bind, Source: dir + "/p", Destination: dir + "/p"},
		{Kind: plan.ROBind, Source: dir + "/b.json", Destination: dir + "/b.json"},
	}, nil)
	inside.Dir, inside.Home = dir+"/p", "/home/u"
	inside.Mountable = func(name string) (string, error) { return "--mount-ro " + strings.TrimPrefix(name, dir), nil }
	for words, want := range map[string]string{
		"claude | --settings DIR/a.json":              "--settings DIR/a.json is not inside: --mount-ro /a.json, or the profile's `mounts`, brings it",
		"claude | --settings=../a.json":               "--settings ../a.json is not inside: --mount-ro /a.json, or the profile's `mounts`, brings it",
		"claude | --add-dir ..":                       "--add-dir ../ is inside only with what is mounted in it: --mount-ro , or the profile's `mounts`, brings it",
		"claude | --settings DIR/b.json":              "",
		"claude | --settings c.json --add-dir .":      "",
		"claude | --settings DIR/none.json":           "",
		"claude | --settings {}":                      "",
		"claude | read DIR/a.json":                    "",
		"claude --settings DIR/a.json | x":            "--settings DIR/a.json is not inside: --mount-ro /a.json, or the profile's `mounts`, brings it",
		"bun DIR/a.json | x":                          "of the agent's command, DIR/a.json is not inside: --mount-ro /a.json, or the profile's `mounts`, brings it",
		"bun DIR/b.json DIR/p/c.json DIR/none.json |": "",
	} {
		own, users, _ := strings.Cut(strings.ReplaceAll(words, "DIR", dir), "|")
		got := UnseenWords(strings.Fields(own), strings.Fields(users), inside)
		if want := strings.ReplaceAll(want, "DIR", dir); strings.Join(got, "; ") != want {
			t.Errorf("%s: %q; want %q", words, got, want)
		}
	}
}
