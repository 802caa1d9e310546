//go:build lab

package network_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/claude/script"
	"claudebox/checks/network/world"
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
