//go:build lab

package claude_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/account"
	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/checks/kit/script"
)

// With `state: host` a conversation goes on from inside to outside and back,
// and nothing else of the user's ~/.claude is changed.
func TestHostStateGoesOnFromOutsideAndBack(t *testing.T) {
	w := newWorld(t, script.Say("Outside, one."), script.Say("Inside, two."), script.Say("Outside, three."))
	w.more = map[string]any{"state": "host"}
	a := w.openAccount(t, "", time.Hour)
	w.write(t, loginFile, a.Login(time.Now().Add(time.Hour)))
	w.write(t, ".claude/settings.json", `{"model": "opus"}`)
	w.write(t, ".claude/projects/-other/secret.jsonl", "{}\n")
	outside := func(words ...string) string {
		cmd := w.outside(t)
		cmd.Dir = w.project
		cmd.Args = append(cmd.Args, words...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	outside()
	before := w.configuration(t)
	w.print(t, "--continue").succeed(t, "Inside, two.")
	for name, was := range before {
		if now := w.configuration(t)[name]; now != was {
			t.Errorf("%s was %q, is %q", name, was, now)
		}
	}
	outside("--continue")
	last := w.model.Requests()[2].Text()
	expect.Contains(t, last, "Outside, one.", "Inside, two.")
	w.authorised(t, 0, 0, 0)
	if got := w.shell(t, "ls ~/.claude/projects/ ~/.claude/projects/*/; echo x >~/.claude/settings.json"); strings.Contains(got, "secret") {
		t.Errorf("another project's conversations are inside:\n%s", got)
	}
	if got := w.read(t, ".claude/settings.json"); got != `{"model": "opus"}` {
		t.Errorf("the user's settings are %s", got)
	}
	if strings.Contains(w.read(t, loginFile), account.Access(1)) {
		t.Error("the login was renewed without need")
	}
}

// configuration is what stands in ~/.claude beside conversations.
func (w *world) configuration(t *testing.T) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.home, ".claude"))
	must.Do(t, err)
	found := map[string]string{".claude.json": w.read(t, ".claude.json")}
	for _, entry := range entries {
		if entry.Type().IsRegular() {
			found[".claude/"+entry.Name()] = w.read(t, ".claude/"+entry.Name())
		}
	}
	return found
}
