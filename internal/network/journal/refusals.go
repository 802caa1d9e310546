package journal

type refusal struct{ what, why string }

// refusals counts what was refused. Where there is too much of it, half of the
// room is for what came first and half for what came last: noise hides neither
// what was before it nor what comes behind it.
type refusals struct {
	count map[refusal]int
	late  []refusal // those of the second half, the oldest first
	more  int       // refusals that are forgotten
}

// A what is kept with so many reasons: the sandbox chooses what some of them say.
const (
	mostReasons  = 3
	otherReasons = "for other reasons"
)

// add counts a refusal, and keeps at most so many apart.
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
