//go:build lab

package claude_test

import (
	"strings"
	"testing"

	"claudebox/checks/kit/script"
)

// The user's shell is zsh, which is not inside: Claude Code's commands are bash's there, and have the aliases and
// functions of a ~/.bashrc that a mount gives.
func TestCommandsHaveWhatAMountedBashrcGives(t *testing.T) {
	w := newWorld(t)
	w.env["SHELL"], w.env["CLAUDE_CODE_SHELL"] = "/usr/bin/zsh", "/usr/bin/zsh"
	w.write(t, ".zshrc", "alias greet='echo of zsh'\n")
	w.write(t, ".bashrc", "alias greet='echo of bash'\nshout() { echo \"$1!\"; }\n")
	w.model.Add(
		script.Bash("greet; shout loud; echo ${SHELL##*/}").After(script.Prompted("begin")),
		script.Say("Done.").After(script.Succeeded("of bash", "loud!", "bash")),
	)
	cmd := w.command(t, "--mount-ro", w.home+"/.bashrc", "-p")
	cmd.Stdin = strings.NewReader("begin")
	if out, err := cmd.Output(); err != nil || string(out) != "Done.\n" {
		t.Fatalf("%q, %v", out, err)
	}
}
