//go:build lab

package sandbox_test

import (
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
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

// A key stands in the address of a gateway, in a list of hosts without a proxy, in a variable that the profile sets, or
// in an argument.
//
// Promise: no login, no API key, no token of git's.
func TestAKeyInAnAddressOrAnotherVariableStaysOutside(t *testing.T) {
	for name, set := range map[string]map[string]string{
		"in the path of a gateway":     {"ANTHROPIC_API_KEY": canary, "ANTHROPIC_BASE_URL": "https://gw.example/" + canary + "/x"},
		"in that of a local one":       {"ANTHROPIC_API_KEY": canary, "ANTHROPIC_BASE_URL": "http://127.0.0.1:9/" + canary},
		"in that of another's":         {"ANTHROPIC_API_KEY": canary, "OPENAI_BASE_URL": "https://gw.example/" + canary},
		"escaped":                      {"ANTHROPIC_API_KEY": "x-" + canary, "ANTHROPIC_BASE_URL": "https://gw.example/x%2D" + canary},
		"in a list of hosts":           {"ANTHROPIC_API_KEY": canary, "NO_PROXY": "localhost," + canary},
		"in a variable of the profile": {"ANTHROPIC_API_KEY": canary},
	} {
		w := newWorldHere(t)
		for variable, value := range set {
			w.env[variable] = value
		}
		profile := w.profile(t, "env: {LITERAL: 'a "+set["ANTHROPIC_API_KEY"]+"'}")
		got := run(t, w.session("env; echo ARGUMENT="+set["ANTHROPIC_API_KEY"], "-P", profile))
		if strings.Contains(got.stdout, canary) || !strings.Contains(got.stdout, "LITERAL=a ") {
			t.Errorf("%s: %s\n%s", name, got.stdout, got.stderr)
		}
	}
}

// ear is an agent's program that listens at an address, on a port that it shares, says what it hears, and makes a file
// when it is ready.
const ear = `ear() { python3 -uc '
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
s.bind((sys.argv[1], int(sys.argv[2]))); s.listen(50); open("ready", "w")
while True:
    c, _ = s.accept()
    print("HEARD", c.recv(65536))
    c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"); c.close()
' "$@" & until [ -e ready ]; do sleep 0.05; done; }; ear `

const aSandboxAnswers = "a sandbox answers there (process "

const askGateway = `curl -sS --max-time 20 -H "x-api-key: $ANTHROPIC_API_KEY" "$ANTHROPIC_BASE_URL/v1/messages"; `

// listenShared listens on a port of loopback that others may share.
func listenShared(t *testing.T) (l net.Listener, port string) {
	t.Helper()
	shared := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		_ = raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
		return err
	}}
	l, err := shared.Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.Do(t, err)
	t.Cleanup(func() { l.Close() })
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return l, port
}

// told is a session of a script that ends with a report.
func (w *world) told(script string, flags ...string) *exec.Cmd {
	return w.claudebox(slices.Concat([]string{"shell", "--yes"}, flags, []string{"--", "bash", "-euc", script})...)
}

// wantStopped checks that nothing of the user's came into a sandbox, and that both sides are told where it stopped.
func wantStopped(t *testing.T, got outcome, port, why string) {
	t.Helper()
	expect.Contains(t, got.stdout, why)
	expect.Contains(t, got.stderr, ":"+port+", "+why)
	for _, form := range []string{canary, base64.StdEncoding.EncodeToString([]byte("u:" + canary))} {
		if strings.Contains(got.stdout+got.stderr, form) {
			t.Errorf("the sandbox got it: %s", got.stdout)
		}
	}
}

// The key of a gateway went to an agent in tier full that listened in its place, while it did not run, or on a port that
// both share.
//
// Promise: no login, no API key, no token of git's.
func TestAnAgentInTheGatewaysPlaceGetsNoKey(t *testing.T) {
	for name, tc := range map[string]struct {
		runs bool
	}{
		"it does not run":            {false},
		"a port that both listen on": {true},
	} {
		t.Run(name, func(t *testing.T) {
			w, seen := newWorldHere(t), &keys{}
			l, port := listenShared(t)
			if tc.runs {
				server := &http.Server{Handler: seen}
				server.SetKeepAlivesEnabled(false) // so that each request is led to one of the two
				go server.Serve(l)                 //nolint:errcheck // until l is closed
			} else {
				l.Close()
			}
			w.env["ANTHROPIC_API_KEY"], w.env["ANTHROPIC_BASE_URL"] = "sk-"+canary, "http://127.0.0.1:"+port
			got := run(t, w.told(ear+"127.0.0.1 "+port+"; for i in {1..12}; do "+askGateway+"done"))
			wantStopped(t, outcome{got.status, strings.ReplaceAll(got.stdout, "saw sk-"+canary, ""), got.stderr}, port, aSandboxAnswers)
		})
	}
}

// Another session took the gateway's place: one in the host's network, or one with a published port.
//
// Promise: no login, no API key, no token of git's.
func TestAnotherSessionInTheGatewaysPlaceGetsNoKey(t *testing.T) {
	for name, tc := range map[string]struct{ network, why string }{
		"full": {"full", aSandboxAnswers}, "published": {"none", "it cannot be seen which program answers there"},
	} {
		t.Run(name, func(t *testing.T) {
			other, w := newWorldHere(t), newWorldHere(t)
			l, port := listenShared(t)
			l.Close()
			flags := []string{"--network", tc.network}
			if tc.network == "none" {
				flags = append(flags, "--publish", port)
			}
			ended := beside(t, other.session(ear+"127.0.0.1 "+port+"; until [ -e end ]; do sleep 0.05; done", flags...))
			for !exists(filepath.Join(other.project, "ready")) {
				time.Sleep(10 * time.Millisecond)
			}
			w.env["ANTHROPIC_API_KEY"], w.env["ANTHROPIC_BASE_URL"] = "sk-"+canary, "http://127.0.0.1:"+port
			got := run(t, w.told(askGateway, "--profile", w.profile(t, "network: inet\nports: {out: ["+port+"]}")))
			other.write(t, "project/end", "")
			heard := <-ended
			got.stdout += heard.stdout
			if tc.network == "none" && strings.Contains(got.stdout, aSandboxAnswers) {
				tc.why = aSandboxAnswers // the program that publishes could be looked into yet
			}
			wantStopped(t, got, port, tc.why)
		})
	}
}

// The password of a proxy of this machine went to an agent that listened in its place.
//
// Promise: no variable of yours inside, unless named.
func TestAnAgentInAProxysPlaceGetsNoPassword(t *testing.T) {
	w := newWorldHere(t)
	l, port := listenShared(t)
	l.Close()
	w.env["HTTPS_PROXY"] = "http://u:" + canary + "@127.0.0.1:" + port
	w.env["HTTP_PROXY"] = w.env["HTTPS_PROXY"]
	got := run(t, w.told(ear+"127.0.0.1 "+port+`; curl -sS -i --max-time 20 http://any.test/ 2>&1; curl -sSv --max-time 20 https://any.test/ 2>&1 || :`))
	wantStopped(t, got, port, aSandboxAnswers)
	if strings.Count(got.stdout, "answers there") < 2 {
		t.Errorf("it says %s", got.stdout)
	}
}
