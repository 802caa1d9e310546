//go:build lab

package claude_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/checks/kit/registry"
	"claudebox/checks/kit/script"
)

// A session without a terminal: the prompt from standard input, what the first request tells, commands, files, an MCP
// server of the project's, what is kept out, and that the next session goes on with the conversation.
func TestASessionThatPrints(t *testing.T) {
	w := newWorld(t)
	note := filepath.Join(w.project, "note.txt")
	mark := fmt.Sprintf("1000%d", os.Getpid()) // seconds, and nobody else's
	w.write(t, ".claude/CLAUDE.md", "Always answer in rhyme.\n")
	w.write(t, "project/.mcp.json", `{"mcpServers": {"echo": {"command": "bash", "args": ["echo.sh"]}}}`)
	w.write(t, "project/echo.sh", echoServer)
	w.keepOut(t)
	w.model.Add(
		script.Bash("id; pwd; ls -a /").After(script.Prompted("please begin")),
		script.Bash("cat /etc/hostname /root/x").After(script.Succeeded(
			fmt.Sprintf("uid=%d(", os.Getuid()), w.project, "nix", "proc")),
		script.Bash("exit 3").After(script.Refused("No such file")),
		script.Use("Write", map[string]any{"file_path": note, "content": "one\n"}).After(script.Refused("Exit code 3")),
		script.Use("Edit", map[string]any{"file_path": note, "old_string": "one", "new_string": "two"}).After(script.Succeeded()),
		script.Bash("echo three >>note.txt").After(script.Succeeded()),
		script.Use("mcp__echo__say", nil).After(script.Succeeded()),
		script.Bash("env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr '\\0' '\\n'").
			After(script.Succeeded("echo from "+w.project, "CLAUDEBOX=1")),
		script.Bash("cat ~/.ssh/* ~/other-project/* ~/.claude/.claude.json; find / -xdev -name id_ed25519").
			After(script.Succeeded("CLAUDEBOX=1", "ANTHROPIC_API_KEY=sk-ant-api03-")),
		// The mark is put together inside, so that only the process itself shows it whole.
		script.Bash(`n=1000; nohup sleep ${n}`+mark[4:]+` >/dev/null 2>&1 </dev/null &
			until tr '\0' ' ' </proc/$!/cmdline | grep "^sleep"; do :; done`),
		script.Say("All done.").After(script.Succeeded("sleep "+mark)),
		script.Say("Second answer."),
	)
	cmd := w.command(t, "-p")
	cmd.Stdin = strings.NewReader("please begin")
	if out, err := cmd.Output(); err != nil || string(out) != "All done.\n" {
		t.Fatalf("%q, %v; want the answer", out, err)
	}
	if got, want := w.read(t, "project/note.txt"), "two\nthree\n"; got != want {
		t.Errorf("note.txt holds %q; want %q", got, want)
	}
	isGone(t, mark)
	requests := w.model.Requests()
	first := requests[0].Text()
	expect.Contains(t, first, "Contents of /etc/claude-code/CLAUDE.md (organization-managed policy instructions)", "e2e", "full",
		"Always answer in rhyme.")
	if root := requests[1]; strings.Contains(root.Prompt(), "boot") {
		t.Errorf("the host's root is seen: %s", root.Prompt())
	}
	for i, request := range requests {
		if strings.Contains(request.Text(), canaryOfTheHome) || strings.Contains(request.Text(), apiKey) {
			t.Errorf("request %d holds the canary:\n%s", i+1, indent(request.Prompt()))
		}
	}
	w.print(t, "--continue").succeed(t, "Second answer.")
	requests = w.model.Requests()
	continues(t, requests[len(requests)-1])
}

const canaryOfTheHome = "canary-7f3a9c"

// keepOut puts the canary where no session may see it.
func (w *world) keepOut(t *testing.T) {
	t.Helper()
	w.env["MY_ORG_TOKEN"] = canaryOfTheHome
	w.env["SSH_AUTH_SOCK"] = "/run/" + canaryOfTheHome
	w.write(t, ".ssh/id_ed25519", canaryOfTheHome)
	w.write(t, ".claude/.claude.json", `{"mcpServers": {"x": {"env": {"T": "`+canaryOfTheHome+`"}}}}`)
	w.write(t, "other-project/secret", canaryOfTheHome)
}

// continues wants a request to go on with the conversation from its first prompt to its last answer.
func continues(t *testing.T, request script.Request) {
	t.Helper()
	var said []string
	for _, message := range request.Messages {
		if message.Role != "system" {
			said = append(said, message.Role+": "+lastLine(message.Content.Text()))
		}
	}
	got := strings.Join(said, ", ")
	begins, ends := "user: please begin, assistant: ", ", assistant: All done., user: please begin"
	if !strings.HasPrefix(got, begins) || !strings.HasSuffix(got, ends) {
		t.Errorf("the second run continues %q; want %q … %q", got, begins, ends)
	}
}

func lastLine(text string) string {
	text = strings.TrimRight(text, "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// isGone wants no process to sleep for so many seconds.
func isGone(t *testing.T, mark string) {
	t.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must.Do(t, err)
	for _, name := range commands {
		if command, _ := os.ReadFile(name); strings.Contains(string(command), "sleep\x00"+mark) {
			t.Errorf("%s is still there: %q", name, command)
		}
	}
}

func TestUnknownFlagsAreTheAgents(t *testing.T) {
	got := newWorld(t).print(t, "--no-such-flag")
	if got.status != 1 || !strings.Contains(got.stderr, "unknown option '--no-such-flag'") {
		t.Errorf("status %d, stderr:\n%s\nwant Claude Code's own refusal", got.status, indent(got.stderr))
	}
}

// Anthropic's installer keeps the program in the home, which inside is another
// one, with a link to it on PATH.
func TestProgramInTheHomeIsBroughtIn(t *testing.T) {
	w := newWorld(t, script.Say("Running."))
	version := filepath.Join(w.home, ".local/share/claude/versions/1.2.3")
	onPath := filepath.Join(w.home, ".local/bin/claude")
	must.Do(t, os.MkdirAll(filepath.Dir(version), 0o755), os.Remove(onPath))
	if out, err := exec.Command("cp", program(t, "CLAUDEBOX_TEST_CLAUDE"), version).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	link(t, version, onPath)
	w.print(t).succeed(t, "Running.")
}

// echoServer is an MCP server of one tool, for whoever has bash and jq.
const echoServer = `while read -r line; do
  case $(jq -r .method <<<"$line") in
    initialize) result='{"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "echo", "version": "1"}}' ;;
    tools/list) result='{"tools": [{"name": "say", "description": "says where it is", "inputSchema": {"type": "object"}}]}' ;;
    tools/call) result=$(jq -n --arg text "echo from $PWD, CLAUDEBOX=$CLAUDEBOX" '{content: [{type: "text", text: $text}]}') ;;
    *) jq -c 'select(.id) | {jsonrpc, id, error: {code: -32601, message: "unknown method"}}' <<<"$line"; continue ;;
  esac
  jq -c --argjson result "$result" '{jsonrpc: "2.0", id: .id, result: $result}' <<<"$line"
done
`

// sayServer is an MCP server of one tool, as a package of npm's has it.
const sayServer = `#!/usr/bin/env node
require('readline').createInterface({ input: process.stdin }).on('line', line => {
  const { id, method } = JSON.parse(line)
  const result = {
    'initialize': { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'say', version: '1' } },
    'tools/list': { tools: [{ name: 'say', description: 'says where it is', inputSchema: { type: 'object' } }] },
    'tools/call': { content: [{ type: 'text', text: 'npx runs in ' + process.cwd() + ', CLAUDEBOX=' + process.env.CLAUDEBOX }] },
  }[method]
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, ...result ? { result } : { error: { code: -32601, message: 'no such method' } } }))
})
`

// An MCP server whose command is npx comes from a registry on this machine in tier allow, and its tool is called.
func TestAnMCPServerByNpxOfARegistry(t *testing.T) {
	packages, err := registry.Start(registry.Package{
		Name: "mcp-say", Version: "1.0.0", Bin: map[string]string{"mcp-say": "say.js"}, Files: map[string]string{"say.js": sayServer},
	})
	must.Do(t, err)
	t.Cleanup(packages.Close)
	w := newWorld(t)
	mount := func(host, sandbox string) map[string]string {
		real, err := filepath.EvalSymlinks(host)
		must.Do(t, err)
		return map[string]string{"host": real, "sandbox": sandbox}
	}
	link(t, "/opt/npm/bin/npx-cli.js", filepath.Join(w.home, "bin/npx"))
	w.write(t, "project/.mcp.json", `{"mcpServers": {"say": {"command": "npx", "args": ["-y", "mcp-say"],
		"env": {"PATH": "/opt/bin:/opt/node:${PATH}", "npm_config_registry": "`+packages.URL+`"}}}}`)
	inside := w.onBranch(0, "allow", w.constants["ANTHROPIC_BASE_URL"], packages.Port)
	inside.more["mounts"] = []any{
		mount(filepath.Join(w.home, "bin"), "/opt/bin"), mount(program(t, "CLAUDEBOX_TEST_NODE"), "/opt/node/node"),
		mount(filepath.Join(program(t, "CLAUDEBOX_LAB_RELEASES"), "npm"), "/opt/npm"),
	}
	w.model.Add(
		script.Use("mcp__say__say", nil),
		script.Say("Heard.").After(script.Succeeded("npx runs in "+w.project, "CLAUDEBOX=1")),
	)
	inside.print(t).succeed(t, "Heard.")
	if n := packages.Fetched(); n != 1 {
		t.Errorf("the package was fetched %d times", n)
	}
}
