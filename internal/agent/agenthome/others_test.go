package agenthome

import (
	"path"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/internal/agent/object"
)

// others makes the settings of an agent again and again, as launches do.
type others struct {
	r     Request
	agent string
	given string
	lies  string
}

func (o *others) launch(t *testing.T, host string) Made {
	t.Helper()
	of := Others[o.agent]
	sources := make([][]byte, len(of.settings))
	sources[len(sources)-1] = []byte(host)
	f := From{Given: o.given, Sources: sources}
	if o.lies != "" {
		f.Old = []byte(o.lies)
	}
	made := of.makeSettings(o.r, f)
	o.given, o.lies = made.Given, string(made.Content)
	return made
}

// What the user has set up for codex, gemini and opencode was not inside, and nothing said so.
func TestSettingsOfOtherAgentsEnterOrAreNamed(t *testing.T) {
	r := Request{
		Theirs: "/home/u/x", Servers: []string{"in", "gone"},
		Runs: runsOnly("jq", "npx"),
		Sees: func(word string) string {
			if strings.HasPrefix(word, "/host/") {
				return word + " is not inside"
			}
			return ""
		},
		Reaches: func(word string) string {
			if strings.Contains(word, "localhost") {
				return word + " is not reached"
			}
			return ""
		},
		Keyed: func(word string) string {
			if key, is := strings.CutSuffix(word, " https://gw.example/v1"); is {
				return key + " is not sent there"
			}
			return ""
		},
	}
	for name, tc := range map[string]struct{ agent, host, kept, left string }{
		"codex: how it thinks":             {"codex", "model = 'x'\ntui.theme = 'dark'", `{"model":"x","tui":{"theme":"dark"}}`, ""},
		"codex: its own sandbox":           {"codex", "sandbox_mode = 'read-only'\napproval_policy = 'never'\n[projects.'/p']\ntrust_level = 'trusted'", `{}`, ""},
		"codex: a program that is there":   {"codex", "notify = ['jq', '.']", `{"notify":["jq","."]}`, ""},
		"codex: a program that is not":     {"codex", "notify = ['notify-send']", `{}`, "setting: your setting notify does not enter: notify-send is not inside"},
		"codex: one with a secret":         {"codex", "notify = ['jq', '--token', 'ghp_kZ3vQ9xB7mT1wR5nL8pJ2hG6fD4sC0yAeUiO']", `{}`, "setting: your setting notify does not enter: it holds what looks like a GitHub"},
		"codex: a file that is there":      {"codex", "model_instructions_file = '/p/x'", `{"model_instructions_file":"/p/x"}`, ""},
		"codex: one that is not":           {"codex", "model_instructions_file = '/host/x'", `{}`, "file: your setting model_instructions_file names /host/x: /host/x is not inside"},
		"codex: a model of this machine":   {"codex", "[model_providers.o]\nbase_url = 'http://localhost:1/v1'", `{"model_providers":{"o":{"base_url":"http://localhost:1/v1"}}}`, "setting: your provider o is not reached: http://localhost:1/v1 is not reached"},
		"codex: where traces go":           {"codex", "[otel]\nexporter = 'none'", `{}`, "setting: your setting otel does not enter: "},
		"codex: what nobody knows":         {"codex", "new = 1\n[skills]\nbundled = true\nconfig = []", `{"skills":{"bundled":true}}`, "setting: your setting new does not enter; setting: your setting skills.config does not enter"},
		"codex: a secret in what enters":   {"codex", "[tools]\nsearch_token = 'abcdefghijkl'", `{}`, "setting: your setting tools does not enter: search_token is probably a secret"},
		"codex: servers":                   {"codex", "[mcp_servers.in]\ncommand = 'npx'\n[mcp_servers.in.env]\nX_TOKEN = 'abcdefghi'\n[mcp_servers.out]\nurl = 'https://x'", `{"mcp_servers":{"in":{"command":"npx"}}}`, "variable: of your MCP server in these secrets do not enter: X_TOKEN; MCP server: you have no MCP server gone in /home/u/x; MCP server: your MCP servers do not enter: out"},
		"codex: a server's header":         {"codex", "[mcp_servers.in]\nurl = 'https://x'\nhttp_headers = { Authorization = 'Bearer abcdefgh' }", `{}`, "MCP server: your MCP server in does not enter: Authorization is probably a secret"},
		"codex: a header by a variable":    {"codex", "[mcp_servers.in]\nurl = 'https://x'\nbearer_token_env_var = 'X_TOKEN'", `{"mcp_servers":{"in":{"bearer_token_env_var":"X_TOKEN","url":"https://x"}}}`, "MCP server: you have no MCP server gone in /home/u/x"},
		"codex: a gateway":                 {"codex", "[model_providers.gw]\nbase_url = 'https://gw.example/v1'\nenv_key = 'GW_KEY'", `{"model_providers":{"gw":{"base_url":"https://gw.example/v1","env_key":"GW_KEY"}}}`, "key: the key of your provider gw does not enter: GW_KEY is not sent there"},
		"codex: a gateway with its key":    {"codex", "[model_providers.gw]\nbase_url = 'https://gw.example/v1'\nexperimental_bearer_token = 'abcdefghijk'\nhttp_headers = { api-key = 'abcdefghijk' }\nenv_http_headers = { X-Key = 'OTHER_KEY' }", `{"model_providers":{"gw":{"base_url":"https://gw.example/v1","env_http_headers":{"X-Key":"OTHER_KEY"}}}}`, "key: the key of your provider gw does not enter: it is written in the file"},
		"codex: a key that a program says": {"codex", "[model_providers.gw]\nauth = { command = 'pass' }", `{"model_providers":{"gw":{}}}`, "key: the key of your provider gw does not enter: it is written in the file, or a program says it"},
		"codex: another address":           {"codex", "openai_base_url = 'https://gw.example/v1'", `{"openai_base_url":"https://gw.example/v1"}`, "key: the key for openai_base_url does not enter: OPENAI_API_KEY is not sent there"},
		"codex: hooks":                     {"codex", "[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = 'command'\ncommand = 'notify-send'\n[[hooks.Stop.hooks]]\ntype = 'command'\ncommand = 'jq'", `{"hooks":{"Stop":[{"hooks":[{"command":"jq","type":"command"}]}]}}`, "hook: your hook of Stop does not enter: notify-send is not inside"},
		"codex: no TOML":                   {"codex", "a = \n", `{}`, "file: your /home/u/x/config.toml does not enter: it line 1 is no TOML"},
		"gemini: how it looks":             {"gemini", `{"ui":{"theme":"x"},/* and */"security":{"folderTrust":{"enabled":true},"auth":{"selectedType":"gemini-api-key"}},}`, `{"security":{"auth":{"selectedType":"gemini-api-key"}},"ui":{"theme":"x"}}`, ""},
		"gemini: what it may do":           {"gemini", `{"tools":{"exclude":["x"],"sandbox":"docker","discoveryCommand":"notify-send","callCommand":"jq"}}`, `{"tools":{"callCommand":"jq","exclude":["x"]}}`, "setting: your setting tools.discoveryCommand does not enter: notify-send is not inside"},
		"gemini: folders":                  {"gemini", `{"context":{"includeDirectories":["/host/a","b","/p"],"fileName":["A.md"]}}`, `{"context":{"fileName":["A.md"],"includeDirectories":["b","/p"]}}`, "file: your setting context.includeDirectories names /host/a: /host/a is not inside"},
		"opencode: a server and a gateway": {"opencode", `{"mcp":{"in":{"type":"local","command":["npx","-y","x"],"environment":{"A":"1","B_TOKEN":"abcdefghi"}}},"provider":{"gw":{"options":{"baseURL":"https://gw.example/v1","apiKey":"{env:GW_KEY}"}}}}`, `{"mcp":{"in":{"command":["npx","-y","x"],"environment":{"A":"1"},"type":"local"}},"provider":{"gw":{"options":{"apiKey":"{env:GW_KEY}","baseURL":"https://gw.example/v1"}}}}`, "variable: of your MCP server in these secrets do not enter: B_TOKEN; MCP server: you have no MCP server gone in /home/u/x; key: the key of your provider gw does not enter: GW_KEY is not sent there"},
		"opencode: a key in the file":      {"opencode", `{"provider":{"gw":{"options":{"baseURL":"https://gw.example/v1","apiKey":"abcdefghi"}},"x":{"options":{"apiKey":"{file:~/.key}"}}}}`, `{"provider":{"gw":{"options":{"baseURL":"https://gw.example/v1"}},"x":{"options":{}}}}`, "key: the key of your provider gw does not enter: it is written in the file; key: the key of your provider x does not enter: it is written in the file"},
		"opencode: a file in what enters":  {"opencode", `{"agent":{"a":{"prompt":"{file:./x.txt}"}}}`, `{}`, "setting: your setting agent does not enter: prompt is probably a secret"},
	} {
		t.Run(name, func(t *testing.T) {
			r := r
			if !strings.Contains(tc.host, "mcp") {
				r.Servers = nil
			}
			o := others{r: r, agent: tc.agent}
			made := o.launch(t, tc.host)
			var left []string
			for _, one := range made.Left {
				left = append(left, one.Kind+": "+one.Text)
			}
			said := strings.Join(left, "; ")
			for i, want := range strings.Split(tc.left, "; ") {
				if tc.left == "" && said != "" || tc.left != "" && (i >= len(left) || !strings.HasPrefix(left[i], want)) {
					t.Errorf("left out is %q, want %q", said, tc.left)
				}
			}
			if !same(object.Encode(object.Parse([]byte(made.Given))), object.Encode(object.Parse([]byte(tc.kept)))) {
				t.Errorf("what enters is %s, want %s", made.Given, tc.kept)
			}
			if strings.Contains(o.lies, "abcdefgh") || strings.Contains(o.lies, "ghp_") {
				t.Errorf("a secret enters: %s", o.lies)
			}
			if _, err := parse(Others[tc.agent].settings[len(Others[tc.agent].settings)-1], made.Content); err != nil {
				t.Errorf("%s: %v", made.Content, err)
			}
		})
	}
}

// What an agent, or its user by a menu inside, has changed there is kept until the user changes the same outside.
func TestSettingsOfOtherAgentsChangedInsideAreKept(t *testing.T) {
	o := others{agent: "codex"}
	o.launch(t, "model = 'a'\nmodel_verbosity = 'low'")
	o.lies = "# mine\nmodel = 'b'\nmodel_verbosity = 'low'\n[projects.'/p']\ntrust_level = 'trusted'\n[mcp_servers.x]\ncommand = 'x'\n"
	before := o.lies
	made := o.launch(t, "model = 'a'\nmodel_verbosity = 'low'")
	if o.lies != before || !slices.Equal(made.Notes, []string{"set inside, in an earlier session, and kept: mcp_servers of config.toml"}) {
		t.Errorf("said %q of %s", made.Notes, o.lies)
	}
	made = o.launch(t, "model = 'c'\nmodel_verbosity = 'low'")
	expect.Contains(t, o.lies, "model = \"c\"\n", "projects = {", "model_verbosity")
	if len(made.Once) != 1 || !strings.HasSuffix(made.Once[0], "count: model") {
		t.Errorf("said %q", made.Once)
	}
	o.lies = "no = TOML = at all"
	if made = o.launch(t, "model = 'c'"); !made.Aside || o.lies != "model = \"c\"\n" {
		t.Errorf("a file that cannot be read became %q, and is kept beside it: %v", o.lies, made.Aside)
	}
	none := others{agent: "gemini"}
	if made = none.launch(t, ""); made.Content != nil || len(made.Left) > 0 {
		t.Errorf("of nothing is made %+v", made)
	}
}

func TestOtherAgentsAreToldOfTheSandbox(t *testing.T) {
	of := Others["gemini"]
	made := of.makeMemory(Request{}, From{Sources: [][]byte{[]byte("be brief\n")}})
	text := string(made.Content)
	if !strings.Contains(text, "/etc/claude-code/CLAUDE.md") || !strings.HasSuffix(text, "\n\nbe brief\n") {
		t.Errorf("told: %s", text)
	}
	codex := Others["codex"].makeMemory(Request{}, From{Sources: [][]byte{nil, []byte("usual\n")}})
	override := Others["codex"].makeMemory(Request{}, From{Sources: [][]byte{[]byte("instead\n"), []byte("usual\n")}})
	if !strings.HasSuffix(string(codex.Content), "usual\n") || !strings.HasSuffix(string(override.Content), "instead\n") {
		t.Errorf("AGENTS.override.md: %s, %s", codex.Content, override.Content)
	}
	for _, f := range Others["opencode"].made() {
		if got := f.Sources(Request{UserHome: "/home/u", Theirs: "/x"}); path.Base(f.Name) == "AGENTS.md" &&
			!slices.Equal(got, []string{"/x/AGENTS.md", "/home/u/.claude/CLAUDE.md"}) {
			t.Errorf("the memory of opencode is one of %q", got)
		}
	}
	inside := text + "and remember x\n" // Gemini's own memory
	made = of.makeMemory(Request{}, From{Old: []byte(inside), Given: made.Given, Sources: [][]byte{[]byte("be long\n")}})
	if got := string(made.Content); !strings.Contains(got, "be long\n") || !strings.HasSuffix(got, "and remember x\n") || strings.Contains(got, "brief") {
		t.Errorf("told: %s", got)
	}
}
