package nixdaemon_test

import (
	"reflect"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/nix/nixdaemon"
)

const realisation = `{"id":"sha256:00!out","outPath":"00bgd045z0d4icpbc2yyz4gx48ak44la-a","signatures":[]}`

func TestBuildResults(t *testing.T) {
	built := nixdaemon.BuildResult{Target: drvA + "!out", Status: nixdaemon.Built}
	for name, tc := range map[string]struct {
		minor int
		times []any
	}{
		"have no CPU times before 1.37":         {35, nil},
		"have optional CPU times from there on": {37, []any{1, 3, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, tc.minor, nixdaemon.Options{}, func(p peer) {
				p.expect(46, 1, drvA+"!out", 0)
				p.send(msgLast, 1, drvA+"!out", 0, "", 1, 0, 10, 20)
				p.send(tc.times...)
				p.send(1, "sha256:00!out", realisation)
				p.untilGone()
			})
			got, err := c.BuildPaths(t.Context(), []string{drvA + "!out"})
			if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], built) {
				t.Errorf("BuildPaths = %+v, %v; want %+v", got, err, built)
			}
		})
	}
}

// result is a [nixdaemon.BuildResult] on the wire, before 1.37.
func result(target string, status int, message string) []byte {
	return words(target, status, message, 0, 0, 0, 0, 0)
}

// open gives a Store whose daemon does as serve says after the handshake.
func open(t *testing.T, serve func(peer)) *nixdaemon.Client {
	s := &nixdaemon.Client{Socket: listen(t, 35, func(p peer) { p.greet(); serve(p); p.untilGone() })}
	t.Cleanup(func() { s.Close() })
	return s
}

// foresee answers op 40: what of targets is nowhere to be had.
func (p peer) foresee(targets, unknown []any) {
	p.expect(append([]any{40, len(targets)}, targets...)...)
	p.send(append([]any{msgLast, 0, 0, len(unknown)}, unknown...)...)
	p.send(0, 0)
}

func TestRealiseSaysWhyForEach(t *testing.T) {
	s := open(t, func(p peer) {
		p.foresee([]any{pathA, pathB}, nil)
		p.expect(46, 2, pathA, pathB, 0)
		p.send(msgNext, "warning: no valid signature for path '"+pathB+"'", msgNext, "something else")
		p.send(msgNext, "error: cannot\n    be had: "+pathB)
		p.send(msgLast, 2, result(pathB, 14, "cannot be had: "+pathB), result(pathA, 1, "")) // in another order
	})
	want := "cannot be had: " + pathB + "\nwarning: no valid signature for path '" + pathB + "'"
	checkFailed(t, s, []string{pathA, pathB}, map[string]string{pathB: want})
}

// checkFailed wants Realise to fail for those, for those reasons.
func checkFailed(t *testing.T, s *nixdaemon.Client, targets []string, want map[string]string) {
	t.Helper()
	failed, err := s.Realise(t.Context(), targets)
	must.Do(t, err)
	got := map[string]string{}
	for target, reason := range failed {
		got[target] = reason.Error()
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Realise fails for %q; want %q", got, want)
	}
}

// What no cache has would stop the daemon's work on the others.
func TestRealiseDoesNotTryWhatIsNowhere(t *testing.T) {
	s := open(t, func(p peer) {
		p.expect(40, 3, pathA, drvA+"!out", pathB)
		p.send(msgNext, "warning: unable to reach the cache", msgLast, 0, 0, 2, drvA, pathA, 0, 0)
		p.expect(46, 1, pathB, 0)
		p.send(msgLast, 1, result(pathB, 1, ""))
	})
	nowhere := "it is not in the store, and no binary cache has it\nwarning: unable to reach the cache"
	checkFailed(t, s, []string{pathA, drvA + "!out", pathB}, map[string]string{pathA: nowhere, drvA + "!out": nowhere})
}

// A daemon stops at the first failure; the rest has status 9 and no message.
func TestRealiseAsksAgainForWhatWasLeftUndecided(t *testing.T) {
	s := open(t, func(p peer) {
		p.foresee([]any{drvA + "!dev,out", pathA, pathB}, nil)
		p.expect(46, 3, drvA+"!dev,out", pathA, pathB, 0)
		p.send(msgLast, 3, result(drvA+"!dev,out", 3, "builder failed"), result(pathA, 9, ""), result(pathB, 9, ""))
		p.expect(46, 2, pathA, pathB, 0)
		p.send(msgLast, 1, result(pathA, 9, "")) // no step forward, and as 2.34 says it
		p.expect(46, 1, pathA, 0)
		p.send(msgLast, 1, result(pathA, 1, ""))
		p.expect(46, 1, pathB, 0)
		p.send(msgLast, 1, result(pathB, 9, ""))
	})
	checkFailed(t, s, []string{drvA + "!dev,out", pathA, pathB}, map[string]string{
		drvA + "!dev,out": "builder failed", pathB: "it failed with status 9",
	})
}

// Up to 2.26 a derivation for another system fails the whole call.
func TestRealiseAsksOneByOneWhenTheCallFails(t *testing.T) {
	s := open(t, func(p peer) {
		p.foresee([]any{drvA + "!out", pathB}, nil)
		p.expect(46, 2, drvA+"!out", pathB, 0)
		p.send(failure("a 'riscv' is required"))
		p.expect(nothingAsked...)
		p.send(nothingAnswered...)
		p.expect(46, 1, drvA+"!out", 0)
		p.send(failure("a 'riscv' is required"))
		p.expect(nothingAsked...)
		p.send(nothingAnswered...)
		p.expect(46, 1, pathB, 0)
		p.send(msgLast, 1, result(pathB, 2, ""))
	})
	checkFailed(t, s, []string{drvA + "!out", pathB}, map[string]string{drvA + "!out": "a 'riscv' is required"})
}

func TestRealiseFailsAsAWholeWithoutADaemon(t *testing.T) {
	s := &nixdaemon.Client{Socket: t.TempDir() + "/none"}
	if failed, err := s.Realise(t.Context(), []string{pathA}); err == nil {
		t.Errorf("Realise = %v, nil; want an error", failed)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close without a connection = %v; want nil", err)
	}
}

// What is valid before it is pinned may be gone after.
func TestPinComesBeforeTheQuestion(t *testing.T) {
	s := open(t, func(p peer) {
		p.expect(11, pathA, 11, pathB, 31, 2, pathA, pathB, 0) // without waiting for an answer
		p.send(msgLast, 1, msgLast, 1, msgLast, 1, pathB)
	})
	valid, err := s.Pin(t.Context(), []string{pathA, pathB})
	if err != nil || !reflect.DeepEqual(valid, []string{pathB}) {
		t.Errorf("Pin = %q, %v; want b", valid, err)
	}
}

func TestABuildResultForNobodyIsABreach(t *testing.T) {
	s := open(t, func(p peer) {
		p.foresee([]any{pathA}, nil)
		p.expect(46, 1, pathA, 0)
		p.send(msgLast, 1, result(pathB, 0, ""))
	})
	_, err := s.Realise(t.Context(), []string{pathA})
	checkCause(t, err, nixdaemon.ErrProtocol, pathB)
}
