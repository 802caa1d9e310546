package helper

import (
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What is no report, or too long to be one, is not taken for an empty one.
func TestAReportThatDoesNotComeIsLost(t *testing.T) {
	for name, tc := range map[string]struct {
		answers func(wire)
		came    bool
	}{
		"an empty one":  {func(w wire) { w.send(reply{}) }, true},
		"a longer one":  {func(w wire) { w.Write([]byte{0xff, 0, 0, 0}) }, false},
		"its end alone": {func(w wire) { w.Close() }, false},
	} {
		ours, theirs := pair(t)
		h := &Helper{closed: true}
		p := process{conn: ours, replies: make(chan reply, 1)}
		go h.watch(p)
		go func() { theirs.receive(&Request{}); tc.answers(theirs) }()
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
			theirs.send(reply{})
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
	h := &Helper{closed: true, started: make(chan error), ended: func(error) { said++ }, ending: time.NewTimer(time.Hour)}
	close(h.started)
	if h.endUnlessClosed(nil); said != 1 {
		t.Errorf("said %d times before", said)
	}
	h.Close()
	if h.endUnlessClosed(nil); said != 1 {
		t.Errorf("said %d times after", said)
	}
}

func pair(t *testing.T) (a, b wire) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]wire
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "end")
		conn, err := net.FileConn(file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		ends[i] = wire{conn.(*net.UnixConn)}
	}
	return ends[0], ends[1]
}
