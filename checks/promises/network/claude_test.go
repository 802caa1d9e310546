//go:build lab

package network_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/script"
	"claudebox/checks/promises/network/world"
)

// The real Claude Code needs its API's host and no other.
func TestClaudeCodeWorksWithItsAPIHostOnly(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	u := newUser(t, w)
	model := script.New(
		script.Bash("curl -sS http://telemetry.test/; curl -sS http://good.test/"),
		script.Say("All done.").After(script.Succeeded("Could not resolve host: telemetry.test", "internet")),
	)
	u.trusting(t, site(t, w, model))
	u.env = append(u.env, "ANTHROPIC_API_KEY=sk-ant-api03-end-to-end-0123456789abcdef")
	flags := u.allowing(t, "good.test", "nix: {daemon: off}", "env: {ANTHROPIC_BASE_URL: https://good.test}")
	got := run(t, u.claude(t, flags, "--dangerously-skip-permissions", "-p", "please begin"))
	if got.status != 0 || got.stdout != "All done.\n" {
		t.Errorf("status %d, stdout %q, stderr:\n%s", got.status, got.stdout, got.stderr)
	}
	if err := model.Err(); err != nil {
		t.Error(err)
	}
	if len(model.Requests()) < 2 || !strings.Contains(got.stderr, "claudebox: refused: ") || !strings.Contains(got.stderr, "1 × telemetry.test (not on") {
		t.Errorf("%d requests; the user is told:\n%s", len(model.Requests()), got.stderr)
	}
	// The gateway gets the true key, which is not inside.
	for _, request := range model.Requests() {
		if got := request.Header.Get("X-Api-Key"); got != "sk-ant-api03-end-to-end-0123456789abcdef" {
			t.Errorf("the key is %q", got)
		}
	}
	if strays := slices.DeleteFunc(model.Strays(), isAhead); len(strays) > 0 {
		t.Errorf("asked for besides the Messages API: %q", strays)
	}
}

// A gateway of one's own by https has the key in each tier that reaches it, and no other host has it.
//
// Promise: no login, no API key, no token of git's.
func TestAnHTTPSGatewayHasTheKeyAndNoOtherHost(t *testing.T) {
	t.Parallel()
	const key = "sk-ant-api03-end-to-end-0123456789abcdef"
	for tier, want := range map[string]string{
		"full": "https://good.test/p good.test true, sub.good.test false", "inet": "https://good.test/p good.test true, sub.good.test false",
		"allow": "https://good.test/p good.test true, sub.good.test false", "none": "no gateway ",
	} {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			u := newUser(t, w)
			asked := make(chan string, 2)
			gateway := func(_ http.ResponseWriter, r *http.Request) {
				asked <- fmt.Sprint(r.Host, " ", r.Header.Get("X-Api-Key") == key)
			}
			u.trusting(t, site(t, w, http.HandlerFunc(gateway), "sub.good.test"))
			u.env = append(u.env, "ANTHROPIC_API_KEY="+key, "ANTHROPIC_BASE_URL=https://good.test/p")
			flags := u.in(t, tier, "compat: off")
			if tier == "allow" {
				flags = u.allowing(t, "good.test, sub.good.test", "compat: off\nnix: {daemon: off}")
			}
			got := run(t, u.reported(t, `echo "${ANTHROPIC_BASE_URL-no gateway}"; env; cat /proc/*/environ 2>/dev/null | tr '\0' '\n'
				for host in good.test/p sub.good.test; do
					curl -sS -H "x-api-key: ${ANTHROPIC_API_KEY-none}" https://$host/v1/messages 2>/dev/null || :
				done`, flags...))
			close(asked)
			first, _, _ := strings.Cut(got.stdout, "\n")
			if got.status != 0 || strings.Contains(got.stdout, key) {
				t.Errorf("%+v", got)
			}
			var list []string
			for a := range asked {
				list = append(list, a)
			}
			if has := first + " " + strings.Join(list, ", "); has != want {
				t.Errorf("%s, want %s\n%s", has, want, got.stderr)
			}
		})
	}
}

// claude is the real Claude Code in a sandbox. claudebox trusts no agent below
// folders of others, and all of root's are nobody's in the world: so the
// program is not launched as its agent.
func (u *user) claude(t *testing.T, flags []string, words ...string) *exec.Cmd {
	t.Helper()
	const place = "/opt/claude"
	return u.claudebox(t, slices.Concat(
		[]string{"shell", "--yes", "--mount-ro", program(t, "CLAUDEBOX_TEST_CLAUDE") + ":" + place}, flags, []string{"--", place}, words)...)
}

// program is the file that a variable names, without links: a mount by a link
// would have to be approved of.
func program(t *testing.T, variable string) string {
	t.Helper()
	name := os.Getenv(variable)
	target, err := filepath.EvalSymlinks(name)
	if err != nil || name == "" {
		t.Fatalf("%s names no program (%q, %v): run checks/test", variable, name, err)
	}
	return target
}

// isAhead reports whether Claude Code asks only to have a connection ready,
// which it does where no proxy is in between.
func isAhead(stray string) bool { return stray == "HEAD /api/hello" }
