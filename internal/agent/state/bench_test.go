package state_test

import (
	"fmt"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/agent/state"
)

// BenchmarkWarm is a launch of which nothing is new, with its end.
func BenchmarkWarm(b *testing.B) {
	w, req := benchWorld(b)
	w.session(req)
	for b.Loop() {
		in, err := state.Look(req)
		must.Do(b, err)
		must.Do(b, in.Prepare())
		must.Do(b, in.Close())
	}
}

// BenchmarkAfterASession is a launch after Claude Code has rewritten a
// .claude.json of 100 kB and nobody took its stamp.
func BenchmarkAfterASession(b *testing.B) {
	w, req := benchWorld(b)
	in := w.session(req)
	var history []string
	for n := range 1000 {
		history = append(history, fmt.Sprintf(`"k%d":{"display":%q}`, n, strings.Repeat("x", 80)))
	}
	before := w.read(rel(w, in.Dir) + "/.claude/.claude.json")
	after := strings.TrimSuffix(before, "}\n") + "," + strings.Join(history, ",") + "}"
	for b.Loop() {
		w.write(rel(w, in.Dir)+"/.claude/.claude.json", after)
		_, err := state.Look(req)
		must.Do(b, err)
	}
}

func benchWorld(b *testing.B) (world, state.Request) {
	w := newWorld(b)
	w.write(".claude/settings.json", `{"model":"opus"}`)
	w.write(".claude/agents/a.md", "")
	w.write(".claude/.credentials.json", loginAt("5"))
	return w, w.request()
}
