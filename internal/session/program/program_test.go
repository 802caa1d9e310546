package program

import (
	"strings"
	"testing"

	"claudebox/internal/agent/editor"
	"claudebox/internal/plan"
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
