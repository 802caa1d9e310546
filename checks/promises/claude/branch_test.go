//go:build lab

package claude_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/script"
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

// D29: after `claudebox instance move` Claude Code goes on with the conversations of a project that was moved, also by
// their ids, and from a folder whose name needs quoting.
func TestConversationsOfAMovedProjectGoOn(t *testing.T) {
	w := newWorld(t, script.Say("Blue it is."), script.Say("Still blue."), script.Say("Blue, again."))
	w.print(t).succeed(t, "Blue it is.")
	old := w.project
	w.project += " moved"
	must.Do(t, os.Rename(old, w.project))
	list, err := filepath.Glob(filepath.Join(w.home, ".claudebox/instances/*"))
	if err != nil || len(list) != 1 {
		t.Fatalf("%q, %v", list, err)
	}
	cmd := w.command(t)
	cmd.Args = []string{cmd.Path, "instance", "move", filepath.Base(list[0])}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w.print(t, "--continue").succeed(t, "Still blue.")
	if text := w.model.Requests()[1].Text(); !strings.Contains(text, "Blue it is.") {
		t.Errorf("the conversation did not go on: %s", text)
	}
	found, err := filepath.Glob(filepath.Join(w.home, ".claudebox/instances/*/.claude/projects/*/*.jsonl"))
	if err != nil || len(found) == 0 {
		t.Fatalf("%q, %v", found, err)
	}
	w.print(t, "--resume", strings.TrimSuffix(filepath.Base(found[0]), ".jsonl")).succeed(t, "Blue, again.")
}
