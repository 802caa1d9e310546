package proxy

import (
	"cmp"
	"fmt"
	"io"
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

// Refused is what was refused, and how often.
type Refused struct {
	What  string `json:"what"` // the target, with the reason if it is another than the list
	Count int    `json:"count"`
}

// Refused lists what was refused, the most frequent first.
func (j *Journal) Refused() []Refused {
	j.mu.Lock()
	defer j.mu.Unlock()
	var list []Refused
	for what, count := range j.refused {
		list = append(list, Refused{what, count})
	}
	slices.SortFunc(list, func(a, b Refused) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.What, b.What))
	})
	if j.others > 0 {
		list = append(list, Refused{"others", j.others})
	}
	return list
}

// Summary is the same in one line for a person: "3 × telemetry.example:443,
// 1 × …"; empty: nothing was refused.
func (j *Journal) Summary() string {
	const shown = 10
	var parts []string
	others := 0
	for i, r := range j.Refused() {
		if i < shown && r.What != "others" {
			parts = append(parts, fmt.Sprintf("%d × %s", r.Count, r.What))
		} else {
			others += r.Count
		}
	}
	if others > 0 {
		parts = append(parts, fmt.Sprintf("%d × others", others))
	}
	return strings.Join(parts, ", ")
}
