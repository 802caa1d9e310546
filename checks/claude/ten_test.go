//go:build lab

package claude_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
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
		cmd := w.onBranch(n, server.URL).command(t, "--branch", fmt.Sprintf("b%d", n), "-p", "please begin")
		all.Go(func() {
			status, stdout, stderr := trial.Run(t, cmd)
			results[n] = outcome{stdout, stderr, status}
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

// onBranch is the user with a profile for one of several agents, whose model is a gateway of this machine, in a network
// of its own.
func (w *world) onBranch(n int, address string) *world {
	one := *w
	one.profile, one.network = fmt.Sprintf(".config/claudebox/profiles/agent%d.yaml", n), "inet"
	_, port, _ := strings.Cut(strings.TrimPrefix(address, "http://"), ":")
	one.more = map[string]any{"name": fmt.Sprintf("agent%d", n), "ports": map[string]any{"out": []json.Number{json.Number(port)}}}
	one.env, one.constants = maps.Clone(w.env), maps.Clone(w.constants)
	one.env["ANTHROPIC_BASE_URL"] = address
	for _, name := range []string{"ANTHROPIC_BASE_URL", "NO_PROXY", "HTTP_PROXY", "HTTPS_PROXY"} {
		delete(one.constants, name)
	}
	return &one
}
