package nixdaemon_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/nix/nixdaemon"
)

const (
	pathA = "/nix/store/00bgd045z0d4icpbc2yyz4gx48ak44la-a"
	pathB = "/nix/store/10bgd045z0d4icpbc2yyz4gx48ak44la-b"
	drvA  = "/nix/store/20bgd045z0d4icpbc2yyz4gx48ak44la-a.drv"
)

func TestEventsReachTheLog(t *testing.T) {
	var got []nixdaemon.Event
	c := dial(t, 38, nixdaemon.Options{Log: func(e nixdaemon.Event) { got = append(got, e) }}, func(p peer) {
		p.expect(1, pathA)
		p.send(msgNext, "\x1b[1mhello\x1b[0m\n")
		p.send(msgStart, 7, 3, 105, "building a", 2, 1, drvA, 0, 1, 6)
		p.send(msgNews, 7, 101, 1, 1, "checking for gcc")
		p.send(msgStop, 7, msgLast, 1)
		p.untilGone()
	})
	if valid, err := c.IsValidPath(t.Context(), pathA); !valid || err != nil {
		t.Fatalf("IsValidPath = %t, %v; want true", valid, err)
	}
	want := []nixdaemon.Event{
		nixdaemon.Message{Text: "\x1b[1mhello\x1b[0m\n"},
		nixdaemon.Start{
			ID: 7, Level: 3, Type: nixdaemon.Build, Text: "building a", Parent: 6,
			Fields: []nixdaemon.Field{{Text: drvA, IsText: true}, {Number: 1}},
		},
		nixdaemon.Result{
			ID: 7, Type: nixdaemon.BuildLogLine,
			Fields: []nixdaemon.Field{{Text: "checking for gcc", IsText: true}},
		},
		nixdaemon.Stop{ID: 7},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("events = %+v; want %+v", got, want)
	}
}

// A connection serves several waits, each with a line of progress of its own.
func TestTheLogCanBeAnotherForTheNextOperation(t *testing.T) {
	c := dial(t, 38, nixdaemon.Options{}, func(p peer) {
		for range 2 {
			p.expect(1, pathA)
			p.send(msgNext, "hello", msgLast, 1)
		}
		p.untilGone()
	})
	for i := range 2 {
		heard := 0
		c.Options.Log = func(nixdaemon.Event) { heard++ }
		if _, err := c.IsValidPath(t.Context(), pathA); err != nil || heard != 1 {
			t.Errorf("operation %d: %d events, %v; want one", i, heard, err)
		}
	}
}

// referrers asks a question, for its error.
func referrers(t *testing.T, c *nixdaemon.Client) error {
	_, err := c.QueryReferrers(t.Context(), pathA)
	return err
}

// The question that a client asks after an error, to see whether the stream
// is in step.
var (
	nothingAsked    = []any{31, 0, 0}
	nothingAnswered = []any{msgLast, 0}
)

func TestAnErrorLeavesTheConnectionUsable(t *testing.T) {
	c := dial(t, 38, nixdaemon.Options{}, func(p peer) {
		p.expect(6, pathA)
		p.send(msgNext, "\n", msgNext, "path a cannot be had")
		p.send(msgNext, "\x1b[35;1mwarning:\x1b[0m no signature for a", failure("\x1b[31;1merror:\x1b[0m path a cannot be had"))
		p.expect(nothingAsked...)
		p.send(nothingAnswered...)
		p.expect(1, pathA)
		p.send(msgLast, 1)
		p.untilGone()
	})
	err := referrers(t, c)
	var answer *nixdaemon.DaemonError
	if !errors.As(err, &answer) {
		t.Fatalf("QueryReferrers = %v; want the daemon's error", err)
	}
	want := nixdaemon.DaemonError{Message: "error: path a cannot be had", Notes: []string{"warning: no signature for a"}}
	if !reflect.DeepEqual(*answer, want) {
		t.Errorf("error = %+v; want %+v", *answer, want)
	}
	if valid, err := c.IsValidPath(t.Context(), pathA); !valid || err != nil {
		t.Errorf("IsValidPath afterwards = %t, %v; want true", valid, err)
	}
}

// A daemon may log without end; only the last words are worth keeping.
func TestAFloodOfMessagesIsNotKept(t *testing.T) {
	const flood = 5000
	heard := 0
	c := dial(t, 38, nixdaemon.Options{Log: func(nixdaemon.Event) { heard++ }}, func(p peer) {
		p.expect(6, pathA)
		for i := range flood {
			p.send(msgNext, fmt.Sprintf("%d %s", i, strings.Repeat("x", 4<<10)))
		}
		p.send(failure("no"))
		p.expect(nothingAsked...)
		p.send(nothingAnswered...)
		p.untilGone()
	})
	var answer *nixdaemon.DaemonError
	if err := referrers(t, c); !errors.As(err, &answer) || heard != flood {
		t.Fatalf("QueryReferrers = %v after %d events; want the daemon's error after %d", err, heard, flood)
	}
	if last := answer.Notes[len(answer.Notes)-1]; len(answer.Notes) != 16 || len(last) > 2<<10 || !strings.HasPrefix(last, "4999 ") {
		t.Errorf("%d notes are kept, the last of %d bytes; want the last 16, cut short", len(answer.Notes), len(last))
	}
}

// An error while the daemon reads the request comes twice. Taken for the
// answer to the next request it would be reported there.
func TestAnErrorThatComesTwiceEndsTheConnection(t *testing.T) {
	for name, then := range map[string]func(peer){
		"when the daemon hangs up": func(peer) {},
		"when it forgets to do so": peer.untilGone,
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, 38, nixdaemon.Options{}, func(p peer) {
				p.expect(6, pathA)
				p.send(failure("not a store path"), failure("not a store path"))
				then(p)
			})
			err := referrers(t, c)
			if err == nil || !strings.Contains(err.Error(), "not a store path") {
				t.Errorf("QueryReferrers = %v; want the daemon's words", err)
			}
			if _, err := c.IsValidPath(t.Context(), pathA); !errors.Is(err, nixdaemon.ErrBroken) {
				t.Errorf("IsValidPath afterwards = %v; want %v", err, nixdaemon.ErrBroken)
			}
		})
	}
}

func TestPipelinedErrorsLeaveTheOrderIntact(t *testing.T) {
	c := dial(t, 38, nixdaemon.Options{}, func(p peer) {
		p.expect(26, pathA, 26, pathB)
		p.send(failure("a is odd"), msgLast, 0)
		p.expect(nothingAsked...)
		p.send(nothingAnswered...)
		p.expect(26, pathB)
		p.send(msgLast, 0)
		p.untilGone()
	})
	if _, err := c.QueryPathInfos(t.Context(), []string{pathA, pathB}); err == nil || !strings.Contains(err.Error(), "a is odd") {
		t.Errorf("QueryPathInfos = %v; want the daemon's words", err)
	}
	if info, err := c.QueryPathInfo(t.Context(), pathB); info != nil || err != nil {
		t.Errorf("QueryPathInfo = %v, %v; want nil, nil", info, err)
	}
}

func TestFaultsOfTheStream(t *testing.T) {
	leavesNothing(t)
	for name, tc := range map[string]struct {
		serve func(peer)
		want  error
	}{
		"a daemon that hangs up":         {func(peer) {}, nixdaemon.ErrBroken},
		"one that hangs up in a message": {func(p peer) { p.send(msgNext, 40) }, nixdaemon.ErrBroken},
		"one that does not answer":       {peer.untilGone, nixdaemon.ErrStalled},
		"one that talks without end":     {peer.flood, nixdaemon.ErrStalled},
		"one that trickles":              {peer.trickle, nixdaemon.ErrStalled},
		"a text shorter than it says":    {func(p peer) { p.send(msgNext, 4096, []byte("short")) }, nixdaemon.ErrBroken},
		"a list longer than it says":     {func(p peer) { p.send(msgLast, 0, pathA); p.untilGone() }, nixdaemon.ErrProtocol},
		"a message of an unknown kind":   {func(p peer) { p.send(42); p.untilGone() }, nixdaemon.ErrProtocol},
		"a text over the limit":          {func(p peer) { p.send(msgNext, 64<<20+1); p.untilGone() }, nixdaemon.ErrProtocol},
		"a list over the limit":          {func(p peer) { p.send(msgLast, 1<<40); p.untilGone() }, nixdaemon.ErrProtocol},
		"padding that is not zero":       {func(p peer) { p.send(msgNext, 1, []byte("aXXXXXXX")); p.untilGone() }, nixdaemon.ErrProtocol},
		"a field of an unknown kind":     {func(p peer) { p.send(msgNews, 1, 1, 1, 2); p.untilGone() }, nixdaemon.ErrProtocol},
		"an error with a position":       {func(p peer) { p.send(msgError, "", 0, "", "m", 1); p.untilGone() }, nixdaemon.ErrProtocol},
		"a truth value that is none": {
			func(p peer) { p.send(msgLast, 0); p.expect(1, pathA); p.send(msgLast, 2); p.untilGone() }, nixdaemon.ErrProtocol,
		},
		"a list that ends before its time": {func(p peer) { p.send(msgLast, 3, pathA) }, nixdaemon.ErrBroken},
	} {
		t.Run(name, func(t *testing.T) {
			opts := nixdaemon.Options{AnswerTimeout: 300 * time.Millisecond}
			c := dial(t, 38, opts, func(p peer) { p.expect(31, 1, pathA, 0); tc.serve(p) })
			_, err := c.QueryValidPaths(t.Context(), []string{pathA})
			if err == nil {
				_, err = c.IsValidPath(t.Context(), pathA)
			}
			checkCause(t, err, tc.want, "")
			if _, err := c.IsValidPath(t.Context(), pathA); !errors.Is(err, nixdaemon.ErrBroken) {
				t.Errorf("the next operation = %v; want %v", err, nixdaemon.ErrBroken)
			}
		})
	}
}

func TestAnIdleConnectionThatIsLostIsNoticed(t *testing.T) {
	for name, tc := range map[string]struct {
		serve func(peer)
		want  error
	}{
		"by its end":                      {func(p peer) { p.send(msgLast, 1); p.Close() }, nixdaemon.ErrBroken},
		"by words out of turn":            {func(p peer) { p.send(msgLast, 1); p.send(msgLast) }, nixdaemon.ErrProtocol},
		"by words out of turn, in one go": {func(p peer) { p.send(msgLast, 1, msgLast) }, nixdaemon.ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			done := make(chan struct{})
			c := dial(t, 38, nixdaemon.Options{}, func(p peer) {
				p.expect(1, pathA)
				tc.serve(p)
				close(done)
				p.untilGone()
			})
			if _, err := c.IsValidPath(t.Context(), pathA); err != nil {
				t.Fatal(err)
			}
			<-done
			checkCause(t, c.Alive(), tc.want, "")
		})
	}
}

func TestCancelEndsTheConnection(t *testing.T) {
	building := make(chan struct{})
	gone := make(chan struct{})
	c := dial(t, 38, nixdaemon.Options{}, func(p peer) {
		p.expect(46, 1, pathA, 0)
		close(building)
		p.untilGone()
		close(gone)
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("Ctrl-C")
	go func() { <-building; cancel(why) }()
	_, err := c.BuildPaths(ctx, []string{pathA})
	if !errors.Is(err, why) {
		t.Errorf("BuildPaths = %v; want the caller's reason", err)
	}
	<-gone // the daemon sees the end at once, and kills the builder
	if err := c.Alive(); !errors.Is(err, nixdaemon.ErrBroken) {
		t.Errorf("Alive() = %v; want %v", err, nixdaemon.ErrBroken)
	}
}

func TestCloseEndsAWaitingOperation(t *testing.T) {
	building := make(chan struct{})
	c := dial(t, 38, nixdaemon.Options{}, func(p peer) {
		p.expect(6, pathA)
		close(building)
		p.untilGone()
	})
	go func() { <-building; c.Close() }()
	if err := referrers(t, c); err == nil {
		t.Error("QueryReferrers went on after Close")
	}
}

func TestNothingIsLeftOpen(t *testing.T) {
	leavesNothing(t)
	socket := listen(t, 38, func(p peer) { p.greet(); p.expect(31, 1, pathA, 0); p.send(msgNext, 1) })
	for range 20 {
		c, err := nixdaemon.Dial(t.Context(), socket, nixdaemon.Options{})
		must.Do(t, err)
		if _, err := c.QueryValidPaths(t.Context(), []string{pathA}); err == nil {
			t.Fatal("QueryValidPaths worked on half a message")
		}
	}
	for range 20 {
		if _, err := nixdaemon.Dial(t.Context(), socket+"/none", nixdaemon.Options{}); err == nil {
			t.Fatal("Dial worked without a socket")
		}
	}
}

// leavesNothing looks, when the test has ended, for descriptors and goroutines
// that it did not find open and running.
func leavesNothing(t *testing.T) {
	t.Helper()
	open, running := descriptors(t), runtime.NumGoroutine()
	t.Cleanup(func() {
		for range 50 { // what ends may need a moment
			if descriptors(t) <= open && runtime.NumGoroutine() <= running {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("%d descriptors are open, %d were before; %d goroutines run, %d did before",
			descriptors(t), open, runtime.NumGoroutine(), running)
	})
}

// descriptors counts what is open.
func descriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	must.Do(t, err)
	return len(entries)
}
