package journal

type refusal struct{ what, why string }

// refusals counts refusals. If there are too many different ones, half of the space is for the
// first ones and half for the last ones: so a flood of refusals hides neither
// those before it nor those after it.
type refusals struct {
	count map[refusal]int
	late  []refusal // those in the second half, the oldest first
	more  int       // how many refusals were forgotten
}

// mostReasons is how many reasons are kept for each what: the sandbox can choose the text of some reasons.
const (
	mostReasons  = 3
	otherReasons = "for other reasons"
)

// add counts a refusal, and keeps at most so many different ones.
func (l *refusals) add(r refusal, most int) {
	if l.count[r] == 0 && l.reasons(r.what) >= mostReasons {
		r.why = otherReasons
	}
	if l.count == nil {
		l.count = map[refusal]int{}
	}
	if l.count[r]++; l.count[r] > 1 || len(l.count) <= most/2 {
		return
	}
	l.late = append(l.late, r)
	if len(l.count) > most {
		l.more += l.count[l.late[0]]
		delete(l.count, l.late[0])
		l.late = l.late[1:]
	}
}

func (l *refusals) reasons(what string) (n int) {
	for r := range l.count {
		if r.what == what {
			n++
		}
	}
	return n
}
