//go:build lab

package sandbox_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// settings writes the user's settings of Claude Code, one hook for each command.
func (w *world) settings(t *testing.T, commands ...string) {
	t.Helper()
	var list []map[string]any
	for _, command := range commands {
		list = append(list, map[string]any{"hooks": []any{map[string]string{"type": "command", "command": command}}})
	}
	text, err := json.Marshal(map[string]any{"hooks": map[string]any{"Stop": list}})
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, ".claude/settings.json", string(text))
}

func (w *world) script(t *testing.T, name, content string) string {
	t.Helper()
	name = w.write(t, name, content)
	if err := os.Chmod(name, 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// D7: one answer to "is it inside?", that of the sandbox. What a shell inside can run enters, and nothing else does.
func TestAHookEntersWhereASandboxCanRunIt(t *testing.T) {
	w := newWorld(t)
	w.script(t, "project/run.sh", "#!/bin/sh\ntrue\n")
	w.script(t, "project/py.py", "#!/usr/bin/python3\n")
	w.script(t, "project/env.sh", "#!/usr/bin/env bash\ntrue\n")
	w.script(t, "project/perl.pl", "#!/usr/bin/env perl\n")
	w.script(t, ".claude/hooks/mine.sh", "#!/bin/bash\ntrue\n")
	w.script(t, "tools/given.sh", "#!/bin/sh\ntrue\n")
	w.script(t, "other/away.sh", "#!/bin/sh\ntrue\n")
	w.link(t, "../other/away.sh", "project/leads-out.sh")
	w.link(t, "run.sh", "project/leads-in.sh")
	commands := []string{
		"/bin/sh", "/bin/bash", "/usr/bin/env", "/usr/bin/jq", "/usr/bin/python3", "jq", "node", "git", "no-such-program",
		"./run.sh", "./py.py", "./env.sh", "./perl.pl", "./leads-out.sh", "./leads-in.sh", w.project + "/run.sh",
		"~/.claude/hooks/mine.sh", "~/tools/given.sh", "~/other/away.sh", "~/.claude/hooks/gone.sh", "/etc/passwd",
	}
	w.settings(t, commands...)
	flags := []string{"--mount-ro", "~/tools"}
	// env runs a program as a hook's shell does, and says 126 or 127 where it cannot.
	var script strings.Builder
	for _, command := range commands {
		script.WriteString("c=" + command + `; s=0; timeout 2 env -- "$c" </dev/null >/dev/null 2>&1 || s=$?; case $s in 126|127) ;; *) echo ` + "'" + command + "'" + ";; esac\n")
	}
	want := w.inside(t, script.String(), flags...)
	got := w.inside(t, `jq -r '.hooks.Stop[].hooks[].command' ~/.claude/settings.json`, flags...)
	wantEqual(t, got, want)
	for _, command := range []string{"/bin/bash", "./run.sh", "~/tools/given.sh", "~/.claude/hooks/mine.sh"} {
		if !strings.Contains(got, command+"\n") {
			t.Errorf("%s does not enter", command)
		}
	}
}

// D9: CLAUDE_CONFIG_DIR moves what is yours.
func TestAnotherFolderOfClaudeCodeIsTheUsers(t *testing.T) {
	w := newWorld(t)
	w.write(t, ".claude/settings.json", `{"model":"wrong"}`)
	w.write(t, "cc/settings.json", `{"model":"right"}`)
	w.write(t, "cc/CLAUDE.md", "moved memory\n")
	w.write(t, "cc/skills/mine/SKILL.md", "a skill\n")
	w.write(t, "cc/.claude.json", `{"theme":"light"}`)
	w.write(t, "cc/.credentials.json", canary)
	w.env["CLAUDE_CONFIG_DIR"] = w.path("cc")
	got := w.inside(t, `jq -r .model ~/.claude/settings.json; cat ~/.claude/CLAUDE.md ~/.claude/skills/mine/SKILL.md; jq -r .theme ~/.claude/.claude.json; ls ~/cc 2>/dev/null || echo not there`)
	wantEqual(t, got, "right\nmoved memory\na skill\nlight\nnot there\n")
	wantRefused(t, run(t, w.session("true", "--mount-ro", "~/cc")), "your own Claude Code")
	w.project = w.path("cc")
	wantRefused(t, run(t, w.session("true")), "CLAUDE_CONFIG_DIR leads to")
}
