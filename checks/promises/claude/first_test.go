//go:build lab

package claude_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/account"
	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/checks/kit/script"
	"claudebox/checks/kit/window"
)

// clock is an MCP server of the user's own, in as little Python as that takes.
const clock = `
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked: continue
    result = {
        "initialize": lambda: {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "clock", "version": "1"}},
        "tools/list": lambda: {"tools": [{"name": "time", "description": "says the time", "inputSchema": {"type": "object", "properties": {}}}]},
        "tools/call": lambda: {"content": [{"type": "text", "text": "half past ten"}]},
    }.get(asked["method"], lambda: {})()
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
`

// newcomer is somebody who has used Claude Code, with settings, a hook, an MCP
// server and two projects, and starts claudebox for the first time.
func newcomer(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	server, err := json.Marshal(map[string]any{
		"hasCompletedOnboarding": true, "mcpServers": map[string]any{"clock": map[string]any{"type": "stdio", "command": "python3", "args": []string{"-c", clock}}},
	})
	must.Do(t, err)
	w.write(t, ".claude.json", string(server))
	w.write(t, ".claude/settings.json", `{"theme": "dark", "hooks": {"PostToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "jq -r .tool_input.command >>hooked"}]}]}}`)
	w.write(t, ".claude/CLAUDE.md", "Be brief.\n")
	w.write(t, "project/.env", "PASSWORD=hunter2\n")
	w.write(t, "project/.gitignore", ".env\nhooked\n")
	w.repository(t)
	w.git(t, "worktree", "add", "-q", "../project-fix")
	w.write(t, "other/README.md", "# Another project\n")
	w.env["EDITOR"] = "sed -i s/brief/terse/"
	w.prefer(t)
	return w
}

// prefer writes the user's own default profile.
func (w *world) prefer(t *testing.T) {
	t.Helper()
	profile, err := json.Marshal(map[string]any{
		"name": "default", "extends": "default", "env": w.constants, "mcp": map[string]any{"import": []string{"clock"}}, "worktrees": []string{"../project-*"},
	})
	must.Do(t, err)
	w.write(t, ".config/claudebox/profiles/default.yaml", string(profile))
}

// opens starts claudebox as a person does: without a profile and with nobody
// to say yes beforehand.
func (w *world) opens(t *testing.T, words ...string) *window.Window {
	t.Helper()
	cmd := w.command(t)
	cmd.Args = append([]string{"claudebox"}, words...)
	return window.Open(t, cmd)
}

// asked answers the question, which stands on a screen of 24 lines.
func asked(t *testing.T, c *window.Window) {
	t.Helper()
	c.Await(t, "Start?")
	if lines := strings.Count(strings.TrimSpace(c.String()), "\n") + 1; lines > 16 {
		t.Errorf("the question takes %d lines:\n%s", lines, indent(c.String()))
	}
	c.Press(t, "y\r")
}

// The first day of somebody who has read the README: the question, a hook, an MCP
// server, a worktree beside the project, /theme, /memory, resume, login, a second
// project. What codex, gemini and opencode answer is in checks/promises/agents.
func TestAFirstDay(t *testing.T) {
	w := newcomer(t)
	c := w.opens(t)
	asked(t, c)
	c.Await(t, window.Ready)
	c.Await(t, "claudebox default · full")
	w.model.Add(
		script.Bash("test ! -s .env && echo one >one && git add one && git commit -qm one && cd ../project-fix && git commit -q --allow-empty -m two && echo all went well"),
		script.Use("mcp__clock__time", nil).After(script.Succeeded("all went well")),
		script.Say("It is done at half past ten.").After(script.Succeeded("half past ten")),
	)
	c.Enter(t, "begin")
	c.Await(t, "It is done at half past ten.")
	if got := w.read(t, "project/hooked"); !strings.Contains(got, "git commit -qm one") {
		t.Errorf("the hook has seen %q", got)
	}
	must.Await(t, "the commit in the worktree", func() bool {
		return w.git(t, "-C", "../project-fix", "log", "-1", "--format=%s") == "two\n"
	})
	c.Enter(t, "/theme")
	c.Await(t, "Choose the text style")
	c.Press(t, "\x1b[B")
	c.Await(t, "❯   Light mode")
	c.Press(t, "\r")
	c.Await(t, "Theme set to light")
	c.Enter(t, "/memory")
	c.Await(t, "User instructions")
	c.Press(t, "\x1b[B")
	c.Await(t, "❯ User instructions")
	c.Press(t, "\r")
	c.Await(t, window.Ready)
	c.Resize(t, 200)
	c.Leave(t)
	resume := w.resumption(t, c)

	// Nothing has changed: it does not ask again.
	c = w.opens(t, resume...)
	c.Await(t, "It is done at half past ten.")
	c.Enter(t, "/theme")
	c.Await(t, "✔ Light mode")
	c.Press(t, "\x1b")
	c.Until(t, "end of the choice", func(shown string) bool { return !strings.Contains(shown, "Choose the text style") })
	w.model.Add(script.Say("Well, then.").After(func(r script.Request) error {
		if !strings.Contains(r.Text(), "Be terse.") {
			return errors.New("what /memory has changed is not there")
		}
		return nil
	}))
	c.Enter(t, "go on")
	c.Await(t, "Well, then.")
	c.Leave(t)
	if got := w.read(t, ".claude/CLAUDE.md"); got != "Be brief.\n" {
		t.Errorf("the user's own CLAUDE.md says %q", got)
	}

	// Without a key one logs in, by a code.
	a := w.openAccount(t, "code-from-the-browser", 8*time.Hour)
	w.prefer(t)
	c = w.opens(t)
	asked(t, c) // the key is used no more
	w.model.Add(script.Say("Hello, Ada."))
	c.Login(t, "code-from-the-browser")
	c.Enter(t, "hello")
	c.Await(t, "Hello, Ada.")
	c.Enter(t, "/exit")
	c.Await(t, "Use it outside and in all projects? [y/N]")
	c.Press(t, "y\r")
	c.Ended(t, 0)
	w.nothingInside(t)

	// U13: it serves every project.
	second := *w
	second.project = filepath.Join(w.home, "other")
	c = second.opens(t)
	asked(t, c)
	c.Await(t, window.Ready)
	w.model.Add(script.Say("Hello from the other."))
	c.Enter(t, "hello")
	c.Await(t, "Hello from the other.")
	c.Leave(t)
	requests := w.model.Requests()
	for _, request := range requests[len(requests)-2:] {
		if got, want := request.Header.Get("Authorization"), "Bearer "+account.Access(1); got != want {
			t.Errorf("authorised by %q; want %q", got, want)
		}
	}
	if grants := a.Grants(); len(grants) != 1 {
		t.Errorf("logged in more than once: %+v", grants)
	}
	w.nothingInside(t)
}

// resumption are the words after claudebox in the last line of a session.
func (w *world) resumption(t *testing.T, c *window.Window) []string {
	t.Helper()
	_, rest, said := strings.Cut(c.String(), "resume with: claudebox ")
	line, _, _ := strings.Cut(rest, "\n")
	if !said {
		t.Fatalf("not said how to resume:\n%s", indent(c.String()))
	}
	return strings.Fields(line)
}

// The agent is told of the project's dev shell, which is made only after its other notes; and runs in it.
func TestTheAgentIsToldOfTheDevShell(t *testing.T) {
	w := newWorld(t)
	w.more = map[string]any{"nix": map[string]any{"daemon": "own"}}
	w.constants["NIX_CONFIG"] = "substituters ="
	w.write(t, "project/shell.nix", `{ p ? import <nixpkgs> { } }: p.runCommand "nix-shell" { outputs = [ "out" ];
		nativeBuildInputs = [ p.hello ]; NAME = "value"; ANTHROPIC_MODEL = "x"; } ":"`)
	w.write(t, "project/.envrc", "use nix\n")
	w.model.Add(script.Bash("hello; echo $NAME"), script.Say("Done.").After(script.Succeeded("Hello, world!", "value")))
	if got := w.print(t); got.status != 0 || !strings.Contains(got.stderr, "does not bring in ANTHROPIC_MODEL") {
		t.Errorf("status %d, stderr: %s", got.status, got.stderr)
	}
	first := w.model.Requests()[0].Text()
	expect.Contains(t, first, "environment is the project's dev shell shell.nix", "Its programs: hello.", "from it: ANTHROPIC_MODEL")
}
