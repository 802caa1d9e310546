package agenthome

import (
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/internal/agent/object"
)

// settings makes settings.json again and again, as launches do.
type settings struct {
	r     Request
	given string
	lies  string // in the agent's home
}

func (s *settings) launch(t *testing.T, host string) Made {
	t.Helper()
	made := makeSettings(s.r, From{Old: []byte(s.lies), Given: s.given, Sources: [][]byte{[]byte(host)}})
	s.given, s.lies = made.Given, string(made.Content)
	return made
}

// U7: what /theme or /model wrote is no longer undone by the next launch.
func TestASettingChangedInsideIsKeptUntilTheUserChangesIt(t *testing.T) {
	var s settings
	s.launch(t, `{"theme":"dark","model":"opus","verbose":true}`)
	s.lies = `{"theme":"light","model":"opus","hooks":{"Stop":[]}}` // verbose was taken away
	made := s.launch(t, `{"theme":"dark","model":"sonnet","verbose":true}`)
	expect.Contains(t, s.lies, `"theme": "light"`, `"model": "sonnet"`, `"hooks"`)
	if strings.Contains(s.lies, "verbose") || len(made.Once) > 0 {
		t.Errorf("said %q of %s", made.Once, s.lies)
	}
	if !slices.ContainsFunc(made.Notes, func(n string) bool { return strings.Contains(n, "set inside") && strings.Contains(n, "hooks") }) {
		t.Errorf("hooks that were set inside are not named: %q", made.Notes)
	}
	made = s.launch(t, `{"theme":"blue","model":"sonnet"}`)
	if len(made.Once) != 1 || !strings.Contains(made.Once[0], "theme") || !strings.Contains(s.lies, `"theme": "blue"`) {
		t.Errorf("said %q of %s", made.Once, s.lies)
	}
	if made = s.launch(t, `{"theme":"blue","model":"sonnet"}`); len(made.Once) > 0 {
		t.Errorf("said again: %q", made.Once)
	}
}

func TestAnAgentTakesARuleOfTheUserAway(t *testing.T) {
	var s settings
	host := `{"permissions":{"deny":["Read(x)"],"ask":["Bash(rm)"]}}`
	s.launch(t, host)
	for _, lies := range []string{`{}`, `{"permissions":{"deny":[]}}`, `{"permissions":{"deny":["Read(y)"],"ask":3}}`, `{"permissions":null}`, `[]`} {
		s.lies = lies
		s.launch(t, host)
		if !strings.Contains(s.lies, "Read(x)") || !strings.Contains(s.lies, "Bash(rm)") {
			t.Errorf("%s became %s", lies, s.lies)
		}
	}
}

// U8: hooks and the status line run inside where their programs are there, and
// the reason is true where they are not.
func TestHooksRunInsideWhereTheirProgramsAre(t *testing.T) {
	r := Request{UserHome: "/home/u", Status: "claudebox it's · inet", Runs: runsOnly("jq", "bash", "env", "timeout", "xargs", "/nix/store/x/bin/y"), Sees: func(word string) string {
		if word == "/home/u/lib.py" {
			return word + " is not inside"
		}
		return ""
	}}
	for name, tc := range map[string]struct{ command, reason string }{
		"a program of the base":         {`jq -r '.tool_input | .command' >>/tmp/log`, ""},
		"one behind variables and a cd": {`A=1 B=2 bash -c "jq ." && cd /tmp; jq .`, ""},
		"one of the store":              {`/nix/store/x/bin/y`, ""},
		"errors in the same place":      {`jq . 2>&1 | jq . &>/tmp/x; jq 2>/dev/null .`, ""},
		"one that it looks for itself":  {`if command -v prettier >/dev/null; then prettier --write; fi`, ""},
		"one that which looks for":      {`bash -c jq && type notify-send && notify-send x`, ""},
		"what it writes to":             {`jq . >> /home/u/lib.py`, ""},
		"a file that it is given":       {`bash /home/u/lib.py`, "/home/u/lib.py is not inside"},
		"one behind an equals sign":     {`jq --from=/home/u/lib.py .`, "/home/u/lib.py is not inside"},
		"a shell's own words":           {`if [ -e x ]; then echo "no | notify-send"; fi`, ""},
		"one that is not there":         {`jq . | notify-send hello`, "notify-send is not inside"},
		"one that another runs":         {`jq -r .file | xargs -r -n 1 -I{} prettier --write {}`, "prettier is not inside"},
		"one behind env and a time":     {`env -u X A=1 timeout -k 1 5s uvx ruff`, "uvx is not inside"},
		"one in a shell's words":        {`bash -lc 'cd x && notify-send "done"'`, "notify-send is not inside"},
		"an empty word":                 {`timeout '' jq; jq '' "" x`, ""},
		"a program of the host":         {`/usr/local/bin/z`, "/usr/local/bin/z is not inside"},
		"one that holds a secret":       {`bash -c 'curl -H ghp_kZ3vQ9xB7mT1wR5nL8pJ2hG6fD4sC0yAeUiO'`, "it holds what looks like a GitHub"},
	} {
		t.Run(name, func(t *testing.T) {
			o := object.Object{}
			o.Set("hooks", map[string]any{"PreToolUse": []any{map[string]any{"matcher": "Bash", "hooks": []any{map[string]string{"type": "command", "command": tc.command}}}}})
			o.Set("statusLine", map[string]string{"type": "command", "command": tc.command})
			host := object.Indented(o, "  ")
			s := settings{r: r}
			made := s.launch(t, string(host))
			notes := strings.Join(said(made), "\n")
			if tc.reason == "" {
				if !same(object.Parse(made.Content)["hooks"], o["hooks"]) || !same(object.Parse(made.Content)["statusLine"], o["statusLine"]) || notes != "" {
					t.Errorf("said %q, made %s", notes, made.Content)
				}
				return
			}
			for _, what := range []string{"your hook of PreToolUse does not enter: ", "your setting statusLine does not enter: "} {
				if !strings.Contains(notes, what+tc.reason) {
					t.Errorf("no %q in %q", what+tc.reason, notes)
				}
			}
			if strings.Contains(s.lies, "PreToolUse") || !strings.Contains(s.lies, `s='claudebox it'\\''s · inet'; n=`) {
				t.Errorf("made %s", s.lies)
			}
		})
	}
}

// runsOnly says of all programs but these that they are not inside.
func runsOnly(programs ...string) func(string) string {
	return func(program string) string {
		if slices.Contains(programs, program) {
			return ""
		}
		return program + " is not inside"
	}
}

func TestMemoryWrittenInsideIsKept(t *testing.T) {
	for name, tc := range map[string]struct {
		inside, host, want string
		aside              bool
	}{
		"when the user's own stays":           {"one\n- learnt\n", "one\n", "one\n- learnt\n", false},
		"when it was rewritten":               {"other\n", "one\n", "other\n", false},
		"behind what the user has changed":    {"one\n- learnt\n", "two\n", "two\n- learnt\n", false},
		"beside it, when both were rewritten": {"other\n", "two\n", "two\n", true},
		"and is not there when nothing was":   {"one\n", "two\n", "two\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			first := makeMemory(Request{}, From{Sources: [][]byte{[]byte("one\n"), nil}})
			made := makeMemory(Request{}, From{Old: []byte(tc.inside), Given: first.Given, Sources: [][]byte{[]byte(tc.host), nil}})
			if string(made.Content) != tc.want || made.Aside != tc.aside || made.Aside != (len(made.Once) == 1) {
				t.Errorf("got %q, aside %v, said %q", made.Content, made.Aside, made.Once)
			}
		})
	}
}

// A token of no known shape stands in a server's words, headers and address as well.
func TestAnMCPServersSecretIsNotOnlyInItsEnvironment(t *testing.T) {
	for server, want := range map[string]string{
		`{"type":"http","url":"https://x.example/mcp","headers":{"X-Api-Key":"hunter2horse9"}}`:                                  "X-Api-Key is",
		`{"type":"http","url":"https://x.example/mcp","headers":{"Authorization":"Bearer hunter2horse9"}}`:                       "Authorization is",
		`{"type":"http","url":"https://x.example/mcp","headers":{"X-Api-Key":"${MY_KEY}","X-V":"1"}}`:                            "",
		`{"type":"sse","url":"https://x.example/sse?api_key=hunter2horse9&v=1"}`:                                                 "api_key is",
		`{"type":"sse","url":"https://x.example/s/QZ4m1v9Kc7xT2bNn8wRs5AuY/mcp"}`:                                                "a part of an address is",
		`{"command":"npx","args":["-y","x","--api-key","hunter2horse9"]}`:                                                        "--api-key is",
		`{"command":"npx","args":["--token=hunter2horse9"]}`:                                                                     "--token is",
		`{"command":"npx","args":["-y","@scope/server-name@latest","--key-file","~/.keys/x","--token","${T}","--port","30000"]}`: "",
	} {
		_, _, reason := Request{}.server(object.Parse([]byte(server)))
		if want == "" && reason != "" || !strings.HasPrefix(reason, want) {
			t.Errorf("%s: %q; want %q", server, reason, want)
		}
	}
}

func TestASecretAmongAHooksWordsKeepsItOut(t *testing.T) {
	r := Request{}
	for command, want := range map[string]bool{
		`curl -H 'X-Api-Key: hunter2horse9' x`: true, `notify --token=hunter2horse9`: true, `API_TOKEN=hunter2horse9 notify`: true,
		`curl -H "X-Api-Key: $KEY" x`: false, `notify --key-file ~/.keys/x`: false, `git log --author somebody`: false, `echo done`: false,
	} {
		hook := object.Object{}
		hook.Set("command", command)
		if got := r.refuse(hook); (got != "") != want {
			t.Errorf("%s: %q", command, got)
		}
	}
}

func TestMCPServersEnterByNameWithoutTheirSecrets(t *testing.T) {
	host := []byte(`{"mcpServers":{
		"docs":{"command":"npx","args":["docs"],"env":{"MODE":"fast","DOCS_TOKEN":"ghp_kZ3vQ9xB7mT1wR5nL8pJ2hG6fD4sC0yAeUiO"}},
		"web":{"type":"http","url":"https://x.example/mcp","headers":{"Authorization":"Bearer ghp_kZ3vQ9xB7mT1wR5nL8pJ2hG6fD4sC0yAeUiO"}},
		"gone":{"command":"/opt/gone"},"other":{"command":"npx"}},
		"projects":{"/p":{"mcpServers":{"local":{"command":"npx"},"here":{"command":"npx"}}},"/q":{"mcpServers":{"foreign":{"command":"npx"}}}}}`)
	r := Request{Servers: []string{"docs", "web", "gone", "absent", "local"}, Runs: runsOnly("npx"), Main: "/p"}
	made := makeAnswers(r, From{Old: []byte(`{"mcpServers":{"own":{"command":"a"}}}`), Sources: [][]byte{host}})
	there := object.Parse(object.Parse(made.Content)["mcpServers"])
	if len(there) != 3 || there["own"] == nil || there["local"] == nil || !strings.Contains(string(there["docs"]), "fast") || strings.Contains(string(made.Content), "ghp_") {
		t.Errorf("made %s", made.Content)
	}
	notes := strings.Join(said(made), "\n")
	for _, want := range []string{
		"of your MCP server docs these secrets do not enter: DOCS_TOKEN", "web does not enter: it holds what looks like",
		"gone does not enter: /opt/gone is not inside", "no MCP server absent", "do not enter: here, other; `mcp: {import: [here]}`",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in %q", want, notes)
		}
	}
	r.Servers = nil
	made = makeAnswers(r, From{Old: made.Content, Given: made.Given, Sources: [][]byte{host}})
	if there := object.Parse(object.Parse(made.Content)["mcpServers"]); len(there) != 1 || there["own"] == nil {
		t.Errorf("one that no longer enters is still there: %s", made.Content)
	}
}

// A server is started with the PATH of its own configuration, and looked for by that.
func TestAnMCPServerIsAskedForWithItsPath(t *testing.T) {
	const servers = `{"mcpServers":{"own":{"command":"srv","env":{"PATH":"/x:${PATH}"}},"plain":{"command":"srv"}}}`
	r := Request{Servers: []string{"own", "plain"}, Runs: runsOnly("PATH=/x:${PATH}\x00srv")}
	made := makeAnswers(r, From{Sources: [][]byte{[]byte(servers)}})
	if there := object.Parse(object.Parse(made.Content)["mcpServers"]); there["own"] == nil || there["plain"] != nil {
		t.Errorf("made %s", made.Content)
	}
	for _, of := range Commands([]byte(servers)) {
		if got := r.CannotRun(of); (got == "") != (of.Of == "MCP server own") {
			t.Errorf("%s: %q", of.Of, got)
		}
	}
}

// said is all that is said of what a file was made of.
func said(made Made) (texts []string) {
	for _, left := range made.Left {
		texts = append(texts, left.Text)
	}
	return append(texts, made.Notes...)
}
