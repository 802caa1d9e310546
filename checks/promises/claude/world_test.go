//go:build lab

package claude_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/account"
	"claudebox/checks/kit/must"
	"claudebox/checks/kit/realgit"
	"claudebox/checks/kit/script"
	"claudebox/checks/kit/trial"
	"claudebox/checks/kit/window"
)

const (
	// apiKey has the shape of a key, so that whoever judges it takes it for one.
	apiKey = "sk-ant-api03-end-to-end-0123456789abcdef"
	// patience is how long a test waits for what must come. It only bounds a
	// hang; no test measures time.
	patience = 90 * time.Second
)

// world is a user of claudebox: a home, a project in it, an environment, and
// a model that plays a script.
type world struct {
	home, project string
	model         *script.Server
	env           map[string]string
	profile       string            // its file, below the home
	network       string            // the tier of it
	constants     map[string]string // the profile's env
	more          map[string]any    // what else the profile says
}

// newWorld makes a user who has an API key and has never used claudebox. When
// the test ends, the script must have been played to its end, and nothing but
// the Messages API may have been asked for: the model stands in for the proxy
// too, so that whatever else Claude Code wants ends there.
func newWorld(t *testing.T, turns ...script.Turn) *world {
	t.Helper()
	t.Parallel()
	home := trial.Home(t, "claudebox-e2e-")
	w := &world{home: home, project: filepath.Join(home, "project"), model: script.New(turns...), profile: ownProfile}
	server := httptest.NewServer(w.model)
	t.Cleanup(func() {
		server.Close()
		if err := w.model.Err(); err != nil {
			t.Errorf("script: %v", err)
		}
		if strays := w.model.Strays(); len(strays) > 0 {
			t.Errorf("asked for besides the Messages API: %q", strays)
		}
	})
	w.env = map[string]string{
		"HOME": home, "USER": os.Getenv("USER"), "PATH": filepath.Join(home, ".local/bin") + ":/usr/bin:/bin",
		"TERM": "xterm-256color", "LANG": "C.UTF-8", "ANTHROPIC_API_KEY": apiKey,
	}
	link(t, program(t, "CLAUDEBOX_TEST_CLAUDE"), filepath.Join(home, ".local/bin/claude"))
	w.write(t, "project/README.md", "# A project\n")
	w.network = "full" // the model is on the host's loopback
	w.constants = map[string]string{
		"ANTHROPIC_BASE_URL": server.URL, "NO_PROXY": "127.0.0.1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC":             "1",
		"CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
	}
	w.proxy(server.URL)
	return w
}

// proxy is where everything goes that is not for the model.
func (w *world) proxy(address string) {
	w.constants["HTTPS_PROXY"], w.constants["HTTP_PROXY"] = address, address
}

// openAccount gives the user an account to log in at with a code, in place of
// the API key.
func (w *world) openAccount(t *testing.T, code string, lifetime time.Duration) *account.Account {
	t.Helper()
	a, err := account.Start(code, lifetime, w.model)
	must.Do(t, err)
	t.Cleanup(a.Close)
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	w.proxy(server.URL)
	w.write(t, "roots.pem", string(a.Roots()))
	w.env["SSL_CERT_FILE"] = filepath.Join(w.home, "roots.pem")
	delete(w.env, "ANTHROPIC_API_KEY")
	delete(w.constants, "ANTHROPIC_BASE_URL") // the account's hosts have the model, too
	return a
}

// program is the file that an environment variable names.
func program(t *testing.T, variable string) string {
	t.Helper()
	name := os.Getenv(variable)
	if name == "" {
		t.Fatalf("%s is not set: run checks/test, or see checks/promises/claude/doc.go", variable)
	}
	return name
}

func link(t *testing.T, target, name string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(name), 0o755), os.Symlink(target, name))
}

// write makes a file below the home.
func (w *world) write(t *testing.T, name, content string) {
	t.Helper()
	name = filepath.Join(w.home, name)
	must.Write(t, name, content)
}

// read is the content of a file below the home.
func (w *world) read(t *testing.T, name string) string {
	t.Helper()
	return must.Read(t, filepath.Join(w.home, name))
}

// ownProfile is where the profile lies: among the user's own, so that all that it says counts.
const ownProfile = ".config/claudebox/profiles/e2e.yaml"

func (w *world) writeProfile(t *testing.T) {
	t.Helper()
	said := map[string]any{
		"name": "e2e", "extends": "default", "network": w.network,
		"nix": map[string]string{"daemon": "off"}, "env": w.constants,
	}
	maps.Copy(said, w.more)
	profile, err := json.MarshalIndent(said, "", "  ")
	must.Do(t, err)
	w.write(t, w.profile, string(profile))
}

// git runs git in the project, and gives what it prints.
func (w *world) git(t *testing.T, words ...string) string {
	t.Helper()
	return realgit.Do(t, w.project, []string{"HOME=" + w.home}, words...)
}

// repository makes Ada's repository of the project as it is.
func (w *world) repository(t *testing.T) {
	t.Helper()
	w.write(t, ".gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.org\n")
	w.git(t, "init", "-q", "-b", "main")
	w.git(t, "add", ".")
	w.git(t, "commit", "-qm", "begin")
}

// command is claudebox in the project, with words for the agent.
func (w *world) command(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	w.writeProfile(t)
	own := []string{"--profile", filepath.Join(w.home, w.profile), "--yes"}
	cmd := exec.CommandContext(ctx, program(t, "CLAUDEBOX_BIN"), append(own, words...)...)
	cmd.Dir, cmd.WaitDelay = w.project, patience
	for name, value := range w.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}

// interact starts the agent without a prompt, in a window.
func (w *world) interact(t *testing.T, words ...string) *window.Window {
	t.Helper()
	return window.Open(t, w.command(t, words...))
}

// outcome is what a run left on its streams, and its exit status.
type outcome struct {
	stdout, stderr string
	status         int
}

// print runs the agent on one prompt, without a terminal.
func (w *world) print(t *testing.T, words ...string) outcome {
	t.Helper()
	status, stdout, stderr := trial.Run(t, w.command(t, append(words, "-p", "please begin")...))
	return outcome{stdout, stderr, status}
}

// succeed wants the run to have ended with status 0 and just this answer.
func (o outcome) succeed(t *testing.T, answer string) {
	t.Helper()
	if o.status != 0 || o.stdout != answer+"\n" {
		t.Fatalf("status %d, stdout %q; want 0 and %q\nstderr:\n%s", o.status, o.stdout, answer, indent(o.stderr))
	}
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
