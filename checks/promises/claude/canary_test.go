//go:build lab

package claude_test

import (
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/script"
	"claudebox/checks/kit/trial"
	"claudebox/checks/kit/window"
)

// canary is the program that searches a sandbox from inside, where the world's
// sandboxes see it.
func (w *world) canary(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(w.home, "tools/canary")
	must.Do(t, trial.Build(program, "claudebox/checks/promises/claude/canary"))
	return program
}

// A conversation during which the login is renewed twice, while everything that
// can be reached inside is searched for the true tokens all the time. It is in
// tier full; checks/promises/network has the other tiers.
//
// Promise: no login, no API key, no token of git's.
func TestNoTrueTokenIsInsideAtAnyTime(t *testing.T) {
	w := newWorld(t)
	a := w.openAccount(t, "code", 8*time.Hour)
	w.write(t, loginFile, a.Login(time.Now().Add(time.Hour)))
	canary := w.canary(t)
	search := canary + " /tmp/stop 0"
	for _, text := range []string{"sk-ant-oat01-access-", "sk-ant-ort01-refresh-", "claudeAiOauth"} {
		search += " " + hex.EncodeToString([]byte(text))
	}
	w.model.Add(
		script.Bash("nohup "+search+" >/tmp/found 2>&1 </dev/null &"),
		script.Say("It searches."),
		script.Bash("cat ~/.claude/.credentials.json; env"),
		script.Say("I have seen it.").After(script.Succeeded("cbx")),
		script.Bash("touch /tmp/stop; until grep searched /tmp/found; do sleep 0.1; done; cat /tmp/found").
			After(script.Prompted("third")),
		script.Say("Nothing.").After(script.Succeeded("searched")),
	)
	c := w.interact(t, "--mount-ro", filepath.Dir(canary))
	c.Await(t, window.Ready)
	c.Enter(t, "first")
	c.Await(t, "It searches.")
	a.Expire()
	c.Enter(t, "second")
	c.Await(t, "I have seen it.")
	a.Expire()
	c.Enter(t, "third")
	c.Await(t, "Nothing.")
	c.Leave(t)
	refreshes(t, a, 2)
	requests := w.model.Requests()
	result, _ := requests[len(requests)-1].Result()
	text := result.Content.Text()
	if strings.Contains(text, "FOUND 0") || strings.Contains(text, "FOUND 1") {
		t.Errorf("a true token is inside:\n%s", indent(text))
	}
	// What is there is found.
	if !strings.Contains(text, "FOUND 2 in "+filepath.Join(w.home, loginFile)) || !strings.Contains(text, "/mem ") {
		t.Errorf("the search says:\n%s", indent(text))
	}
	w.nothingInside(t)
}
