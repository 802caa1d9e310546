//go:build lab

package words_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// The report in docs/workspace.md is the one of a session that does what is told there.
func TestTheReportInTheDocumentsIsReal(t *testing.T) {
	const (
		makes = `printf 'all:\n\ttrue\n' >Makefile; echo '{}' >package.json; git add .; git -c user.name=u -c user.email=u@x commit -qm tools`
		agent = `echo more: >>Makefile; echo '{"scripts": {}}' >package.json; git init -q tool; git -C tool commit -q --allow-empty -m x; mkdir .vscode
			echo '{}' >.vscode/tasks.json; echo export X=1 >.envrc; mkdir node_modules; git init -q node_modules/left
			git -C node_modules/left config core.fsmonitor ./x; ln -s ~/.bashrc notes`
	)
	home, env := user(t)
	run := func(words ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
		cmd.Dir, cmd.Env = filepath.Join(home, "project"), env
		status, stdout, stderr := trial.Run(t, cmd)
		if status != 0 {
			t.Fatalf("%q: status %d\n%s%s", words, status, stdout, stderr)
		}
		return stderr
	}
	run("sh", "-c", makes)
	must.Write(t, filepath.Join(home, ".bashrc"), "")
	got := run(os.Getenv("CLAUDEBOX_BIN"), "-y", "shell", "--", "bash", "-c", agent)
	_, got, _ = strings.Cut(got, "claudebox: what your own tools run")
	got = "claudebox: what your own tools run" + strings.ReplaceAll(got, home, "/home/u")
	for _, b := range blocks(t) {
		if b.file == "workspace.md" && b.language == "text" && b.text == got {
			return
		}
	}
	t.Errorf("docs/workspace.md has another report than\n%s", got)
}
