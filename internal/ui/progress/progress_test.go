package progress

import (
	"strings"
	"testing"
	"time"

	"claudebox/internal/nix/nixdaemon"
)

// copying is what a daemon says of two paths, the first of which has come.
var copying = []nixdaemon.Event{
	nixdaemon.Start{ID: 1, Type: nixdaemon.CopyPaths},
	nixdaemon.Result{ID: 1, Type: nixdaemon.Progressed, Fields: []nixdaemon.Field{{Number: 1}, {Number: 2}, {}, {}}},
}

func TestProgressRedrawsOneLineOnATerminalAndTakesItAway(t *testing.T) {
	var out strings.Builder
	p := &Line{out: &out, terminal: true, first: time.NewTimer(time.Hour), shown: time.Now().Add(-time.Minute)}
	for _, e := range copying {
		p.Hear(e)
	}
	p.Done()
	if want := "\r\x1b[Kclaudebox: fetched 1 of 2 paths\r\x1b[K"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestProgressWritesPlainLinesToALog(t *testing.T) {
	var out strings.Builder
	p := &Line{out: &out, first: time.NewTimer(time.Hour), shown: time.Now().Add(-time.Minute)}
	for _, e := range copying {
		p.Hear(e)
	}
	p.Done()
	if want := "claudebox: fetched 1 of 2 paths\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestProgressSaysNothingOfWhatIsOverSoon(t *testing.T) {
	var out strings.Builder
	p := &Line{out: &out, terminal: true, first: time.NewTimer(time.Hour)}
	for _, e := range copying {
		p.Hear(e)
	}
	p.Done()
	if out.Len() > 0 {
		t.Errorf("got %q", out.String())
	}
}
