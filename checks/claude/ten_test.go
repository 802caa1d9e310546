//go:build lab

package claude_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"claudebox/checks/claude/script"
	"claudebox/checks/trial"
)

// Ten agents work at once, each on a branch of its own: they edit, run a test with the shared node_modules, serve on one
// port and commit. Meanwhile the user commits and switches. Then the branches are merged by plain git.
func TestTenAgentsWorkOnTenBranchesAtOnce(t *testing.T) {
	const agents = 10
	w := newWorld(t)
	w.write(t, "project/.gitignore", "node_modules\n")
	w.write(t, "project/node_modules/kind/index.js", "module.exports = 7\n")
	w.write(t, "project/main.txt", "one\n")
	w.repository(t)
	results := make([]outcome, agents)
	var all sync.WaitGroup
	for n := range agents {
		file := fmt.Sprintf("work%d.txt", n)
		model := script.New(
			script.Use("Write", map[string]any{"file_path": filepath.Join(w.project, file), "content": "done\n"}),
			script.Bash("grep -c 7 node_modules/kind/index.js").After(script.Succeeded()),
			script.Bash("python3 -m http.server 3000 --bind 127.0.0.1 >/dev/null 2>&1 & for i in $(seq 100); do "+
				"curl -fs http://127.0.0.1:3000/"+file+" && break; sleep 0.1; done").After(script.Succeeded("1")),
			script.Bash("git add . && git commit -qm 'work "+fmt.Sprint(n)+"'").After(script.Succeeded("done")),
			script.Say(fmt.Sprintf("Agent %d is done.", n)).After(script.Succeeded()),
		)
		server := httptest.NewServer(model)
		t.Cleanup(server.Close)
		profile := w.onBranch(t, n, server.URL)
		branch := fmt.Sprintf("b%d", n)
		all.Go(func() {
			results[n] = w.printBy(t, profile, "--branch", branch)
			if err := model.Err(); err != nil {
				t.Errorf("agent %d: %v", n, err)
			}
		})
	}
	for n := range 5 {
		w.write(t, "project/main.txt", fmt.Sprintf("%d\n", n))
		w.git(t, "commit", "-qam", fmt.Sprintf("mine %d", n))
		w.git(t, "switch", "-qC", "other")
		w.git(t, "switch", "-q", "main")
	}
	all.Wait()
	for n, got := range results {
		if want := fmt.Sprintf("Agent %d is done.\n", n); got.status != 0 || got.stdout != want {
			t.Errorf("agent %d: status %d, %q\n%s", n, got.status, got.stdout, indent(got.stderr))
		}
	}
	if got := w.git(t, "status", "--porcelain", "--ignored"); got != "!! node_modules/\n" {
		t.Errorf("in the user's folder: %s", got)
	}
	for n := range agents {
		w.git(t, "merge", "-q", "-m", "merge", fmt.Sprintf("b%d", n))
	}
	if got := w.git(t, "ls-files", "work*"); strings.Count(got, "work") != agents {
		t.Errorf("merged are\n%s", got)
	}
}

// onBranch writes the profile of one agent, whose model is a gateway of this machine, in a network of its own.
func (w *world) onBranch(t *testing.T, n int, address string) (file string) {
	t.Helper()
	_, port, _ := strings.Cut(strings.TrimPrefix(address, "http://"), ":")
	said := map[string]any{
		"name": fmt.Sprintf("agent%d", n), "extends": "default", "network": "inet", "nix": map[string]string{"daemon": "off"},
		"ports": map[string]any{"out": []json.Number{json.Number(port)}},
		"env": map[string]string{
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
		},
	}
	text, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf(".config/claudebox/profiles/agent%d.yaml", n)
	w.write(t, name, string(text))
	w.write(t, fmt.Sprintf("gateway%d", n), address)
	return filepath.Join(w.home, name)
}

// printBy runs the agent of a profile on one prompt.
func (w *world) printBy(t *testing.T, profile string, words ...string) outcome {
	own := []string{"--profile", profile, "--yes"}
	cmd := exec.CommandContext(t.Context(), program(t, "CLAUDEBOX_BIN"), append(append(own, words...), "-p", "please begin")...)
	cmd.Dir, cmd.WaitDelay = w.project, patience
	for name, value := range w.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	gateway := w.read(t, "gateway"+strings.TrimSuffix(strings.TrimPrefix(filepath.Base(profile), "agent"), ".yaml"))
	cmd.Env = append(cmd.Env, "ANTHROPIC_BASE_URL="+gateway)
	status, stdout, stderr := trial.Run(t, cmd)
	return outcome{stdout, stderr, status}
}
