//go:build lab

package sandbox_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"claudebox/checks/kit/expect"
)

// keys notes which keys came to a gateway.
type keys struct {
	mu   sync.Mutex
	list []string
}

func (k *keys) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = append(k.list, r.Header.Get("X-Api-Key")+r.Header.Get("Authorization"))
	_, _ = io.WriteString(w, "gateway "+r.Host+r.URL.Path+" saw "+r.Header.Get("X-Api-Key")+r.Header.Get("Authorization")+"\n")
}

// taken empties the list.
func (k *keys) taken() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := slices.Compact(k.list)
	k.list = nil
	return list
}

// D8: a gateway's key went to api.anthropic.com, and a gateway of this machine could not be used by any setting.
func TestAKeyGoesToItsGatewayAndNowhereElse(t *testing.T) {
	const key = "sk-" + canary
	seen := &keys{}
	server := httptest.NewServer(seen)
	t.Cleanup(server.Close)
	address, _ := url.Parse(server.URL)
	_, port, _ := net.SplitHostPort(address.Host)
	const ask = `curl -sS --max-time 20 -H "x-api-key: ${ANTHROPIC_API_KEY-none}" "$ANTHROPIC_BASE_URL/v1/messages" | sed "s/sk-x*cbx[a-z0-9]*/PLACEHOLDER/"; `
	const elsewhere = `curl -sS --max-time 20 -o /dev/null -w '%{http_code}\n' -H "x-api-key: $ANTHROPIC_API_KEY" https://api.anthropic.com/v1/messages`
	for _, tc := range []struct{ name, network, outcome string }{
		{"full", "network: full", "gateway"},
		{"inet", "network: inet\nports: {out: [" + port + "]}", "gateway"},
		{"allow", "network: {tier: allow, allow: [anthropic]}\nports: {out: [" + port + "]}", "gateway"},
		{"inet, without the port", "network: inet", "leads to port " + port + " of this machine, which tier inet does not reach: `ports: {out: [" + port + "]}`"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorldHere(t)
			w.env["ANTHROPIC_API_KEY"], w.env["ANTHROPIC_BASE_URL"] = key, server.URL+"/p"
			file := w.profile(t, tc.network)
			if tc.outcome != "gateway" {
				got := run(t, w.session("true", "--profile", file))
				if !strings.Contains(got.stderr, tc.outcome) {
					t.Errorf("it says %s", got.stderr)
				}
				return
			}
			wantEqual(t, w.inside(t, ask+elsewhere, "--profile", file), "gateway "+address.Host+"/p/v1/messages saw PLACEHOLDER\n403\n")
			if got := seen.taken(); !slices.Equal(got, []string{key}) {
				t.Errorf("the gateway got %q", got)
			}
			if list := findings(t, succeed(t, w.search("--profile", file))); len(list) > 0 {
				t.Errorf("inside was found %q", list)
			}
		})
	}
	w := newWorldHere(t)
	w.env["ANTHROPIC_API_KEY"], w.env["ANTHROPIC_BASE_URL"] = key, server.URL
	got := run(t, w.session(`echo "${ANTHROPIC_API_KEY-no key} ${ANTHROPIC_BASE_URL-no gateway}"`, "--network", "none"))
	wantEqual(t, got.stdout, "no key no gateway\n")
}

// The address may stand in the settings of Claude Code, the key be a token, or be let in as it is.
func TestAGatewayOfTheSettingsCountsAsTheVariables(t *testing.T) {
	seen := &keys{}
	server := httptest.NewServer(seen)
	t.Cleanup(server.Close)
	const ask = `curl -sS --max-time 20 -H "authorization: Bearer $ANTHROPIC_AUTH_TOKEN" "$ANTHROPIC_BASE_URL/v1/messages" >/dev/null`
	w := newWorldHere(t)
	w.write(t, ".claude/settings.json", `{"env":{"ANTHROPIC_BASE_URL":"`+server.URL+`","ANTHROPIC_AUTH_TOKEN":"`+canary+`","OTHER":"x"}}`)
	w.inside(t, ask)
	if got := seen.taken(); !slices.Equal(got, []string{"Bearer " + canary}) {
		t.Errorf("the gateway got %q", got)
	}
	if list := findings(t, succeed(t, w.search())); len(list) > 0 {
		t.Errorf("inside was found %q", list)
	}
	w.write(t, ".claude/settings.json", "{}")
	w.env["ANTHROPIC_API_KEY"], w.env["ANTHROPIC_BASE_URL"] = canary, server.URL
	file := w.profile(t, "secrets: [{env: ANTHROPIC_API_KEY, hosts: [api.anthropic.com], secret: inside}]")
	wantEqual(t, succeedWarned(t, w.session(`echo "$ANTHROPIC_API_KEY"`, "--profile", file), "can be read inside: ANTHROPIC_API_KEY"), canary+"\n")
}

// An https gateway is the key's host, and Anthropic's is not.
func TestAnHTTPSGatewayGetsItsKey(t *testing.T) {
	w := newWorldHere(t)
	w.env["ANTHROPIC_API_KEY"], w.env["ANTHROPIC_BASE_URL"] = "sk-"+canary, "https://gw.example/anthropic"
	got := run(t, w.claudebox("plan", "--all"))
	if !strings.Contains(got.stdout, "gw.example") || strings.Contains(got.stdout, canary) {
		t.Errorf("the plan says\n%s", got.stdout)
	}
	wantEqual(t, w.inside(t, `echo $ANTHROPIC_BASE_URL; curl -sS --max-time 20 -o /dev/null -w '%{http_code}\n' -H "x-api-key: $ANTHROPIC_API_KEY" https://api.anthropic.com/v1/messages`),
		"https://gw.example/anthropic\n403\n")
}

// D13: a wrapper on PATH that sets a gateway and starts Claude Code is what people have who use another model.
func TestAWrappersGatewayCountsAsTheVariables(t *testing.T) {
	seen := &keys{}
	server := httptest.NewServer(seen)
	t.Cleanup(server.Close)
	w := newWorldHere(t)
	w.script(t, "bin/claude", "#!/bin/bash\nexport ANTHROPIC_BASE_URL="+server.URL+"\nexport ANTHROPIC_AUTH_TOKEN='"+canary+"'\nexport GREETING=hello MY_SECRET=x\nexec ~/.local/share/claude/claude env \"$@\"\n")
	w.env["PATH"] = w.path("bin") + ":" + w.env["PATH"]
	got := run(t, w.claudebox("--yes", "--no-report"))
	if got.status == 0 || !strings.Contains(got.stderr, "is a script that starts") { // two assignments in a line are not read
		t.Errorf("status %d, %s", got.status, got.stderr)
	}
	w.script(t, "bin/claude", "#!/bin/bash\nexport ANTHROPIC_BASE_URL="+server.URL+"\nexport ANTHROPIC_AUTH_TOKEN='"+canary+"'\nexport GREETING=hello\nexec ~/.local/share/claude/claude \"$@\"\n")
	plan := run(t, w.claudebox("plan", "--all")).stdout
	expect.Contains(t, plan, "ANTHROPIC_AUTH_TOKEN", "GREETING", "your wrapper", "your gateway")
	if strings.Contains(plan, canary) || strings.Contains(plan, "left out") {
		t.Errorf("the plan shows the token, or leaves something out:\n%s", plan)
	}
}

// Clouds that serve Claude: a bearer stays outside, for the hosts of its region; what cannot work is told, and the choice
// enters, so that no other account is used instead.
func TestCloudsThatServeClaude(t *testing.T) {
	w := newWorldHere(t)
	w.env["CLAUDE_CODE_USE_BEDROCK"], w.env["AWS_REGION"], w.env["DISABLE_TELEMETRY"] = "1", "eu-west-1", "1"
	got := run(t, w.session("echo $CLAUDE_CODE_USE_BEDROCK $AWS_REGION $DISABLE_TELEMETRY"))
	wantEqual(t, got.stdout, "1 eu-west-1 1\n")
	if !strings.Contains(got.stderr, "cannot log in to Bedrock inside") {
		t.Errorf("it says %s", got.stderr)
	}
	w.env["AWS_BEARER_TOKEN_BEDROCK"] = canary
	plan := run(t, w.claudebox("plan")).stdout
	if !strings.Contains(plan, "bedrock-runtime.eu-west-1.amazonaws.com") || strings.Contains(plan, canary) {
		t.Errorf("the plan says %s", plan)
	}
	if list := findings(t, succeed(t, w.search())); len(list) > 0 {
		t.Errorf("inside was found %q", list)
	}
	for variable, want := range map[string]string{"CLAUDE_CODE_USE_VERTEX": "Vertex", "CLAUDE_CODE_USE_FOUNDRY": "Foundry"} {
		w := newWorldHere(t)
		w.env[variable] = "1"
		if got := run(t, w.session("true")); !strings.Contains(got.stderr, "cannot log in to "+want) {
			t.Errorf("%s: %s", variable, got.stderr)
		}
	}
}

// The address of a gateway can have a password in it, which came inside with it.
//
// Promise: no login, no API key, no token of git's.
func TestAPasswordInAGatewaysAddressStaysOutside(t *testing.T) {
	for set, want := range map[string]string{
		"https://u:" + canary + "@gw.example/x":      "https://gw.example/x",
		"https://" + canary + "@gw.example":          "https://gw.example",
		"http://u:" + canary + "@127.0.0.1:9/x":      "http://127.0.0.1:9/x",
		"https://u:%zz" + canary + "@gw.example":     "https://gw.example",
		"https://gw.example/x?v=1&api_key=" + canary: "https://gw.example/x",
		"https://gw.example/x?v=1":                   "https://gw.example/x?v=1",
	} {
		w := newWorldHere(t)
		w.env["ANTHROPIC_BASE_URL"] = set
		got := run(t, w.session(`echo "$ANTHROPIC_BASE_URL"`))
		wantEqual(t, got.stdout, want+"\n")
		if told := strings.Contains(got.stderr, "in the address of ANTHROPIC_BASE_URL stays outside"); told != strings.Contains(set, canary) {
			t.Errorf("%s: told %v\n%s", want, told, got.stderr)
		}
	}
}
