//go:build lab

package claude_test

import (
	"strings"
	"testing"

	"claudebox/checks/claude/script"
)

// Conversations are those of a branch: --continue goes on with the last one there, whatever was said on another branch
// or in the user's folder since.
func TestAConversationIsContinuedOnItsBranch(t *testing.T) {
	w := newWorld(t)
	w.write(t, "project/a", "a\n")
	w.repository(t)
	on := func(branch string, words ...string) outcome {
		return w.print(t, append([]string{"--network", "full", "--branch", branch}, words...)...)
	}
	w.model.Add(script.Bash("echo one >>a; git commit -qam one"), script.Say("Said on one.").After(script.Succeeded()))
	on("one").succeed(t, "Said on one.")
	w.model.Add(script.Say("Said on two."))
	on("two").succeed(t, "Said on two.")
	w.model.Add(script.Say("Said in the folder."))
	w.print(t).succeed(t, "Said in the folder.")
	w.model.Add(script.Bash("echo more >>a"), script.Say("Said again.").After(script.Succeeded()))
	on("one", "--continue").succeed(t, "Said again.")
	all := w.model.Requests()
	last := all[len(all)-1].Text()
	if !strings.Contains(last, "Said on one.") || strings.Contains(last, "Said on two.") || strings.Contains(last, "Said in the folder.") {
		t.Errorf("what was said before:\n%s", indent(last))
	}
	if first := all[0].Text(); !strings.Contains(first, "on branch `one`") {
		t.Error("the agent is not told of its branch")
	}
	if got := w.git(t, "log", "--format=%s", "main..one"); got != "what the agent left uncommitted\none\n" {
		t.Errorf("the branch has\n%s", got)
	}
	if got := w.git(t, "status", "--porcelain"); strings.Contains(got, " a") || w.read(t, "project/a") != "a\n" {
		t.Errorf("the user's folder: %s", got)
	}
}
