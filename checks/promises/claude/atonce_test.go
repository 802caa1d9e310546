//go:build lab

package claude_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/script"
	"claudebox/checks/kit/trial"
)

// Agents work at once, two or ten in checks/long, each on a branch of its own, in a network of its own: they edit, run a
// test with the shared node_modules, serve on one port and commit. Meanwhile the user commits, switches and installs with
// npm. Then the branches are merged by plain git.
func TestAgentsWorkOnBranchesAtOnce(t *testing.T) {
	agents := trial.Count(2, 10)
	w := newWorld(t)
	w.write(t, "project/.gitignore", "node_modules\n")
	w.write(t, "kind/7.js", "module.exports = 7\n")
	w.write(t, "kind/large", "")
	must.Do(t, os.Truncate(filepath.Join(w.home, "kind/large"), 21_000_000)) // as large as what becomes a layer
	w.write(t, "kind/package.json", `{"name": "kind", "version": "1.0.0"}`)
	w.write(t, "extra/package.json", `{"name": "extra", "version": "1.0.0"}`)
	w.write(t, "project/package.json", `{"name": "p", "dependencies": {"kind": "file:../kind"}}`)
	w.npm(t, "install")
	w.write(t, "project/main.txt", "one\n")
	w.repository(t)
	results := make([]outcome, agents)
	var all sync.WaitGroup
	for n := range agents {
		file := fmt.Sprintf("work%d.txt", n)
		model := script.New(
			script.Use("Write", map[string]any{"file_path": filepath.Join(w.project, file), "content": "done\n"}),
			script.Bash("grep -c 7 node_modules/kind/7.js").After(script.Succeeded()),
			script.Bash("python3 -m http.server 3000 --bind 127.0.0.1 >/dev/null 2>&1 & for i in $(seq 100); do "+
				"curl -fs http://127.0.0.1:3000/"+file+" && break; sleep 0.1; done").After(script.Succeeded("1")),
			script.Bash("git add . && git commit -qm 'work "+fmt.Sprint(n)+"'").After(script.Succeeded("done")),
			script.Say(fmt.Sprintf("Agent %d is done.", n)).After(script.Succeeded()),
		)
		server := httptest.NewServer(model)
		t.Cleanup(server.Close)
		cmd := w.onBranch(n, []string{"inet", "allow"}[n%2], server.URL).command(t, "--branch", fmt.Sprintf("b%d", n), "-p", "please begin")
		all.Go(func() {
			status, stdout, stderr := trial.Run(t, cmd)
			results[n] = outcome{stdout, stderr, status}
			if err := model.Err(); err != nil {
				t.Errorf("agent %d: %v", n, err)
			}
		})
	}
	for n := range 3 {
		w.write(t, "project/main.txt", fmt.Sprintf("%d\n", n))
		if n%2 == 0 {
			w.npm(t, "install", "../extra")
		} else {
			w.npm(t, "uninstall", "extra")
		}
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

// npm runs npm in the project without a network, as the user does.
func (w *world) npm(t *testing.T, words ...string) {
	t.Helper()
	cli := filepath.Join(program(t, "CLAUDEBOX_LAB_RELEASES"), "npm/bin/npm-cli.js")
	words = append([]string{cli, "--offline", "--no-audit", "--no-fund", "--install-links", "--prefix", w.project}, words...)
	cmd := exec.Command(program(t, "CLAUDEBOX_TEST_NODE"), words...)
	cmd.Dir = w.project
	cmd.Env = []string{"HOME=" + w.home, "PATH=" + w.env["PATH"]}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm: %v, %s", err, out)
	}
}

// onBranch is the user with a profile for one of several agents, whose model is a gateway of this machine, in a network
// of its own, of some tier, that reaches further ports of this machine.
func (w *world) onBranch(n int, tier, address string, ports ...string) *world {
	one := *w
	one.profile, one.network = fmt.Sprintf(".config/claudebox/profiles/agent%d.yaml", n), tier
	_, port, _ := strings.Cut(strings.TrimPrefix(address, "http://"), ":")
	out := []json.Number{json.Number(port)}
	for _, port := range ports {
		out = append(out, json.Number(port))
	}
	one.more = map[string]any{"name": fmt.Sprintf("agent%d", n), "ports": map[string]any{"out": out}}
	one.env, one.constants = maps.Clone(w.env), maps.Clone(w.constants)
	one.env["ANTHROPIC_BASE_URL"] = address
	for _, name := range []string{"ANTHROPIC_BASE_URL", "NO_PROXY", "HTTP_PROXY", "HTTPS_PROXY"} {
		delete(one.constants, name)
	}
	return &one
}
