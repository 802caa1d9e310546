package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestSummary(t *testing.T) {
	var log strings.Builder
	j := NewJournal(&log, func() time.Time { return time.Date(2026, 11, 21, 17, 0, 0, 5e6, time.UTC) })
	if got := j.Summary(); got != "" {
		t.Errorf("nothing was refused: %q", got)
	}
	j.refuse(&refusal{what: "b.example:443"})
	for range 3 {
		j.refuse(&refusal{what: "telemetry.example:443"})
	}
	j.refuse(&refusal{what: "a.example:80", why: "its address 127.0.0.1 is loopback"})
	want := "3 × telemetry.example:443, 1 × a.example:80 (its address 127.0.0.1 is loopback), 1 × b.example:443"
	if got := j.Summary(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if first, _, _ := strings.Cut(log.String(), "\n"); first != "2026-11-21T17:00:00.005Z refused b.example:443" {
		t.Errorf("logged %q", first)
	}
}

// An agent may ask for names without end.
func TestTheJournalDoesNotGrowWithoutEnd(t *testing.T) {
	j := NewJournal(nil, time.Now)
	for i := range 10_000 {
		j.refuse(&refusal{what: fmt.Sprintf("n%d.example:443", i)})
	}
	if len(j.refused) > kept {
		t.Errorf("%d names are kept", len(j.refused))
	}
	if got := j.Summary(); !strings.HasSuffix(got, ", 9990 × others") {
		t.Errorf("got %q", got)
	}
}
