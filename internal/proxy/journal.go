package proxy

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Journal counts what was refused, and writes every decision to a log if
// there is one. It may be used from many goroutines.
type Journal struct {
	mu      sync.Mutex
	log     io.Writer
	now     func() time.Time
	refused map[string]int
	others  int // refused beyond what is kept apart
}

// NewJournal makes one. log may be nil; now is for its lines only.
func NewJournal(log io.Writer, now func() time.Time) *Journal {
	return &Journal{log: log, now: now, refused: map[string]int{}}
}

// kept bounds what an agent can make the journal hold.
const kept = 256

func (j *Journal) refuse(r *refusal) {
	text := printable(r.what)
	if r.why != "" {
		text += " (" + printable(r.why) + ")"
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, known := j.refused[text]; known || len(j.refused) < kept {
		j.refused[text]++
	} else {
		j.others++
	}
	j.write("refused", text)
}

func (j *Journal) note(what, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write(what, text)
}

// write adds a line to the log. A log that cannot be written, on a full disk,
// is no reason to end the session.
func (j *Journal) write(what, text string) {
	if j.log != nil {
		fmt.Fprintf(j.log, "%s %-7s %s\n", j.now().UTC().Format("2006-01-02T15:04:05.000Z"), what, text)
	}
}

// Summary is what was refused and how often, the most frequent first, in one
// line: "3 × telemetry.example:443, 1 × …"; empty: nothing was.
func (j *Journal) Summary() string {
	const shown = 10
	j.mu.Lock()
	defer j.mu.Unlock()
	names := slices.SortedFunc(maps.Keys(j.refused), func(a, b string) int {
		return cmp.Or(cmp.Compare(j.refused[b], j.refused[a]), cmp.Compare(a, b))
	})
	var parts []string
	others := j.others
	for i, name := range names {
		if i < shown {
			parts = append(parts, fmt.Sprintf("%d × %s", j.refused[name], name))
		} else {
			others += j.refused[name]
		}
	}
	if others > 0 {
		parts = append(parts, fmt.Sprintf("%d × others", others))
	}
	return strings.Join(parts, ", ")
}
