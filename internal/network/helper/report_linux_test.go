package helper

import (
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/network/link"
)

// What is no report, or too long to be one, is not taken for an empty one.
func TestAReportThatDoesNotComeIsLost(t *testing.T) {
	for name, tc := range map[string]struct {
		answers func(link.Conn)
		came    bool
	}{
		"an empty one":  {func(w link.Conn) { w.Send(reply{}) }, true},
		"a longer one":  {func(w link.Conn) { w.Write([]byte{0xff, 0, 0, 0}) }, false},
		"its end alone": {func(w link.Conn) { w.Close() }, false},
	} {
		ours, theirs := pair(t)
		h := &Helper{closed: true}
		p := process{conn: ours, replies: make(chan reply, 1)}
		go h.watch(p)
		go func() { theirs.Receive(&Request{}); tc.answers(theirs) }()
		if _, came := p.ask(Request{Last: true}); came != tc.came {
			t.Errorf("%s: came %t; want %t", name, came, tc.came)
		}
	}
}

// A helper that talks unasked could keep claudebox from seeing its end, and from starting another.
func TestReportsThatNobodyAskedForHideNoEnd(t *testing.T) {
	ours, theirs := pair(t)
	h := &Helper{closed: true}
	p := process{conn: ours, replies: make(chan reply, 1)}
	go func() {
		for range 3 {
			theirs.Send(reply{})
		}
		theirs.Close()
	}()
	ended := make(chan struct{})
	go func() { h.watch(p); close(ended) }()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("it waits for somebody to take the reports")
	}
}

// The session reads why its network ended when it has closed it: nothing is written there any more.
func TestNothingIsSaidToHaveEndedAfterTheClose(t *testing.T) {
	said := 0
	stage, _ := pair(t)
	h := &Helper{stage: stage, closed: true, started: make(chan error), ended: func(error) { said++ }, ending: time.NewTimer(time.Hour)}
	close(h.started)
	if h.endUnlessClosed(nil); said != 1 {
		t.Errorf("said %d times before", said)
	}
	h.Close()
	if h.endUnlessClosed(nil); said != 1 {
		t.Errorf("said %d times after", said)
	}
}

func pair(t *testing.T) (a, b link.Conn) {
	t.Helper()
	ours, theirs, err := link.Pair()
	if err == nil {
		a, err = link.Open(ours)
	}
	if err == nil {
		b, err = link.Open(theirs)
	}
	must.Do(t, err)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}
