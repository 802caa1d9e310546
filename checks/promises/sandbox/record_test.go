//go:build lab

package sandbox_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// --record tells what ran, what crossed, and what was changed; and no secret that was let in by its name.
func TestARecordTellsWhatHappened(t *testing.T) {
	const token = "swordfish-7f3a9c-of-mine"
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", identity)
	cmd := w.session(`printf 'x\n' >.envrc; git commit -qm "by the agent" --allow-empty; sh -c 'sleep 0.5; :' "$MY_ORG_TOKEN"; sleep 0.5`, "--record", w.path("record"))
	cmd.Env = append(cmd.Env, "CLAUDEBOX_EXTRA_ENV=MY_ORG_TOKEN", "MY_ORG_TOKEN="+token)
	if got := run(t, cmd); got.status != 0 {
		t.Fatal(got)
	}
	text := w.read(t, "record")
	if strings.Contains(text, token) {
		t.Error("the secret is in the record")
	}
	if info, err := os.Stat(w.path("record")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	var kinds, ran []string
	for line := range strings.Lines(text) {
		var is struct {
			Event, What, Why string
			Words            []string
		}
		if err := json.Unmarshal([]byte(line), &is); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		kinds = append(kinds, strings.TrimSpace(is.Event+" "+is.What))
		ran = append(ran, strings.Join(is.Words, " "))
	}
	for _, want := range []string{"commits main", "changed .envrc", "ended"} {
		if !slices.ContainsFunc(kinds, func(k string) bool { return strings.HasPrefix(k, want) }) {
			t.Errorf("no line says %q:\n%s", want, text)
		}
	}
	for _, want := range []string{"sleep 0.5", "sh -c sleep 0.5; : ***"} {
		if !slices.Contains(ran, want) {
			t.Errorf("no program was %q:\n%s", want, text)
		}
	}
	if kinds[len(kinds)-1] != "ended" {
		t.Errorf("the last line is %s", kinds[len(kinds)-1])
	}
	refused := run(t, w.session("true", "--record", "here"))
	if refused.status == 0 || !strings.Contains(refused.stderr, "write it to a place that the agent cannot write to") {
		t.Errorf("in the project: %v", refused)
	}
}
