//go:build lab

package agents_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"claudebox/checks/kit/authority"
	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// answer is what each model says, and key what each agent is let in by.
const (
	answer = "The answer from the script is forty-two."
	key    = "sk-0123456789abcdef0123456789abcdef"
)

// patience bounds a hang; no test measures time.
const patience = 90 * time.Second

// api answers each way of asking a model with the same sentence.
type api struct {
	mu     sync.Mutex
	asked  []string // method and path
	keyed  bool     // the key came with a question
	bodies []string
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	a.asked = append(a.asked, r.Method+" "+r.URL.Path)
	a.bodies = append(a.bodies, string(body))
	a.keyed = a.keyed || strings.Contains(r.Header.Get("Authorization")+r.Header.Get("X-Goog-Api-Key")+r.URL.RawQuery, key)
	a.mu.Unlock()
	say := func(events ...string) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range events {
			fmt.Fprintf(w, "%s\n\n", event)
		}
	}
	text, _ := json.Marshal(answer)
	switch {
	case strings.HasSuffix(r.URL.Path, "/responses"):
		item := `{"type":"message","id":"m1","role":"assistant","status":"completed","content":[{"type":"output_text","text":` + string(text) + `,"annotations":[]}]}`
		say("event: response.created\ndata: "+`{"type":"response.created","response":{"id":"r1"}}`,
			"event: response.output_item.done\ndata: "+`{"type":"response.output_item.done","output_index":0,"item":`+item+`}`,
			"event: response.completed\ndata: "+`{"type":"response.completed","response":{"id":"r1","usage":{"input_tokens":1,"input_tokens_details":null,"output_tokens":1,"output_tokens_details":null,"total_tokens":2}}}`)
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		say(`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":`+string(text)+`},"finish_reason":null}]}`,
			`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`,
			`data: [DONE]`)
	case strings.Contains(r.URL.Path, ":streamGenerateContent"):
		say(`data: {"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":` + string(text) + `}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}}`)
	case strings.Contains(r.URL.Path, ":generateContent"):
		fmt.Fprintf(w, `{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":%s}]},"finishReason":"STOP"}]}`, text)
	case strings.Contains(r.URL.Path, ":countTokens"):
		fmt.Fprint(w, `{"totalTokens":1}`)
	default:
		http.Error(w, `{"error":{"message":"not in the script"}}`, http.StatusNotFound)
	}
}

// agents are those of package plan's table beside Claude Code: how each is
// told where its API is, and asked one thing.
var agents = map[string]struct {
	keyName string
	env     func(url string) map[string]string
	words   func(url string) []string
	before  string // run inside first
	kept    string // a folder of its home that it writes to
}{
	"codex": {
		keyName: "OPENAI_API_KEY", kept: ".codex",
		words: func(url string) []string {
			return []string{
				"exec", "--skip-git-repo-check", "-c", `model_provider="script"`, "-c",
				`model_providers.script={name="script",base_url="` + url + `/v1",env_key="OPENAI_API_KEY",wire_api="responses"}`, "please begin",
			}
		},
	},
	"gemini": {
		keyName: "GEMINI_API_KEY", kept: ".gemini",
		env: func(url string) map[string]string { return map[string]string{"GOOGLE_GEMINI_BASE_URL": url} },
		// Another address means another way to log in, which has to be said.
		before: `echo '{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false}}' >~/.gemini/settings.json`,
		words:  func(string) []string { return []string{"-m", "gemini-2.5-pro", "-p", "please begin"} },
	},
	"opencode": {
		keyName: "OPENAI_API_KEY", kept: ".local/share/opencode",
		env: func(url string) map[string]string {
			return map[string]string{
				"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
				"OPENCODE_CONFIG_CONTENT": `{"model":"script/m","small_model":"script/m","provider":{"script":{"npm":"@ai-sdk/openai-compatible",` +
					`"options":{"baseURL":"` + url + `/v1","apiKey":"{env:OPENAI_API_KEY}"},"models":{"m":{"name":"m"}}}}}`,
			}
		},
		words: func(string) []string { return []string{"run", "please begin"} },
	},
}

// The key of each agent is used at its own host, and inside is a placeholder of it.
//
// Promise: no login, no API key, no token of git's.
func TestTheKeysOfOtherAgentsStayOutside(t *testing.T) {
	hosts := []string{"api.openai.com", "generativelanguage.googleapis.com"}
	certificate, roots, err := authority.Certify(hosts)
	must.Do(t, err)
	for name, agent := range agents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := trial.Home(t, "cb-agent-")
			model := &api{}
			server := httptest.NewUnstartedServer(model)
			server.TLS, server.EnableHTTP2 = &tls.Config{Certificates: []tls.Certificate{certificate}}, true
			server.StartTLS()
			t.Cleanup(server.Close)
			proxy := httptest.NewServer(tunnel(hosts, server.Listener.Addr().String()))
			t.Cleanup(proxy.Close)
			constants := map[string]string{"HTTPS_PROXY": proxy.URL}
			address := "https://" + hosts[0]
			if agent.env != nil {
				maps.Copy(constants, agent.env(address))
			}
			delete(constants, "GOOGLE_GEMINI_BASE_URL")
			profile, err := json.Marshal(map[string]any{
				"name": "x", "extends": "default", "agent": name, "env": constants, "nix": map[string]string{"daemon": "off"},
			})
			must.Do(t, err, os.Mkdir(home+"/p", 0o755), os.WriteFile(home+"/x.json", profile, 0o600),
				os.WriteFile(home+"/roots.pem", roots, 0o600))
			run := func(words ...string) (status int, stdout, stderr string) {
				return start(t, home, home+"/p", words, agent.keyName+"="+key, "SSL_CERT_FILE="+home+"/roots.pem")
			}
			script := agent.before + "\ntrue; echo $" + agent.keyName + "; env"
			if status, stdout, stderr := run("shell", "--", "bash", "-c", script); status != 0 || strings.Contains(stdout, key) || !strings.Contains(stdout, "cbx") {
				t.Fatalf("status %d, inside is %s\n%s", status, stdout, stderr)
			}
			status, stdout, stderr := run(append([]string{"--"}, agent.words(address)...)...)
			if status != 0 || !strings.Contains(stdout, answer) || !model.keyed {
				t.Fatalf("status %d, said %q\n%s\nasked: %q", status, stdout, stderr, model.asked)
			}
		})
	}
}

// tunnel is a proxy that leads to an address in the place of some hosts, and
// nowhere else.
func tunnel(hosts []string, address string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inside, err := net.Dial("tcp", address)
		if !slices.Contains(hosts, r.URL.Hostname()) || err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer inside.Close()
		client, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer client.Close()
		fmt.Fprint(client, "HTTP/1.1 200 OK\r\n\r\n")
		go io.Copy(inside, client) //nolint:errcheck // until one of them leaves
		_, _ = io.Copy(client, inside)
	})
}

// start starts claudebox as a user with a home in a project.
func start(t *testing.T, home, project string, words []string, env ...string) (status int, stdout, stderr string) {
	programs := filepath.Dir(os.Getenv("CLAUDEBOX_TEST_CLAUDE"))
	node := filepath.Dir(os.Getenv("CLAUDEBOX_TEST_NODE"))
	words = append([]string{"-P", home + "/x.json", "-y", "--no-report"}, words...)
	cmd := exec.CommandContext(t.Context(), os.Getenv("CLAUDEBOX_BIN"), words...)
	cmd.Dir, cmd.WaitDelay = project, patience
	cmd.Env = append([]string{
		"HOME=" + home, "USER=u", "TERM=xterm", "LANG=C.UTF-8", "PATH=" + programs + ":" + node + ":/usr/bin:/bin",
	}, env...)
	return trial.Run(t, cmd)
}

// own is what the user of each agent has set up: a model, who is asked for it, what the agent is always told, and an
// MCP server that makes a file.
var own = map[string]struct{ settings, content, memory string }{
	"codex": {".codex/config.toml", `
model = "own-model" # of the user
model_provider = "script"
notify = ["notify-send", "done"]

[model_providers.script]
name = "script"
base_url = "AT/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"

[mcp_servers.mine]
command = "bash"
args = ["-c", "touch began; exec cat"]
`, ".codex/AGENTS.md"},
	"gemini": {".gemini/settings.json", `{ // of the user
		"model": {"name": "own-model"}, "security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": false},
		"tools": {"discoveryCommand": "notify-send"},
		"mcpServers": {"mine": {"command": "bash", "args": ["-c", "touch began; exec cat"]}},
	}`, ".gemini/GEMINI.md"},
	"opencode": {".config/opencode/opencode.jsonc", `{ // of the user
		"model": "script/own-model", "small_model": "script/own-model", "plugin": ["notify-send"],
		"provider": {"script": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "AT/v1", "apiKey": "{env:OPENAI_API_KEY}"},
			"models": {"own-model": {"name": "m"}}}},
		"mcp": {"mine": {"type": "local", "command": ["bash", "-c", "touch began; exec cat"]}},
	}`, ".config/opencode/AGENTS.md"},
}

// What the user has set up for another agent than Claude Code was not inside, without a word: the model, the gateway,
// the instructions, the MCP servers. It answers by that gateway, which its key is let in for, also in the home that it has
// left; and keeps nothing outside.
func TestWhatIsSetUpForOtherAgentsEnters(t *testing.T) {
	for name, agent := range agents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := trial.Home(t, "cb-agent-")
			model := &api{}
			server := httptest.NewServer(model)
			t.Cleanup(server.Close)
			constants := map[string]string{"HTTPS_PROXY": server.URL, "NO_PROXY": "127.0.0.1"}
			if agent.env != nil {
				maps.Copy(constants, agent.env(server.URL))
			}
			delete(constants, "OPENCODE_CONFIG_CONTENT")
			profile, err := json.Marshal(map[string]any{
				"name": "x", "extends": "default", "agent": name, "env": constants, "nix": map[string]string{"daemon": "off"},
				"secrets": []map[string]any{{"env": agent.keyName, "hosts": []string{"api.example.org"}, "secret": "inside"}},
				"mcp":     map[string]any{"import": []string{"mine"}},
			})
			set := own[name]
			must.Do(t, err, os.Mkdir(home+"/p", 0o755), os.WriteFile(home+"/x.json", profile, 0o600),
				os.MkdirAll(filepath.Dir(filepath.Join(home, set.settings)), 0o755),
				os.WriteFile(filepath.Join(home, set.settings), []byte(strings.ReplaceAll(set.content, "AT/v1", server.URL+"/v1")), 0o600),
				os.WriteFile(filepath.Join(home, set.memory), []byte("Always say zebra.\n"), 0o600),
				os.MkdirAll(filepath.Dir(filepath.Join(home, set.memory))+"/skills/mine", 0o755),
				os.WriteFile(filepath.Dir(filepath.Join(home, set.memory))+"/skills/mine/SKILL.md",
					[]byte("---\nname: mine\ndescription: what a zebra can do\n---\nSay it.\n"), 0o600))
			words := map[string][]string{
				"codex": {"exec", "--skip-git-repo-check", "please begin"}, "gemini": {"-p", "please begin"}, "opencode": {"run", "please begin"},
			}[name]
			outside := files(filepath.Join(home, agent.kept))
			var stderr string
			for range 2 { // the second time in the home that the first has left
				status, stdout, said := start(t, home, home+"/p", append([]string{"--"}, words...), agent.keyName+"="+key)
				if stderr = said; status != 0 || !strings.Contains(stdout, answer) || !model.keyed {
					t.Fatalf("status %d, said %q\n%s\nasked: %q", status, stdout, stderr, model.asked)
				}
			}
			if len(files(home+"/.claudebox/instances/*/home/"+agent.kept)) == 0 {
				t.Errorf("nothing is kept in ~/%s", agent.kept)
			}
			if now := files(filepath.Join(home, agent.kept)); !slices.Equal(now, outside) {
				t.Errorf("~/%s outside had %q, and has %q", agent.kept, outside, now)
			}
			sent := strings.Join(model.asked, " ") + strings.Join(model.bodies, "\n")
			expect.Contains(t, sent, "own-model", "Always say zebra.", "/etc/claude-code/CLAUDE.md", "what a zebra can do")
			if _, err := os.Lstat(home + "/p/began"); err != nil {
				t.Errorf("the MCP server did not begin: %v\n%s", err, stderr)
			}
			_, stdout, stderr := start(t, home, home+"/p", []string{"plan"}, agent.keyName+"="+key)
			if _, left, _ := strings.Cut(stdout, "left out: 1 setting\n"); !strings.Contains(left, "your setting ") {
				t.Errorf("what is left out is not named: %s%s", stdout, stderr)
			}
		})
	}
}

// files are what is in a folder.
func files(folder string) []string {
	found, _ := filepath.Glob(folder + "/*")
	return found
}
