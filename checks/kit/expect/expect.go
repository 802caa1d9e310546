// Package expect is for what a test looks at: where it is not as it should be, the test fails and goes on. Only tests import
// it.
package expect

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Contains expects each of these in a text.
func Contains(t testing.TB, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// Linear expects the processor time that do takes in its goroutine to grow with a number, and not with its square. It
// compares many with an eighth of that, in which a busy machine changes little.
func Linear(t testing.TB, many int, do func(many int)) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	few := processorTime(t, func() { do(many / 8) })
	if all := processorTime(t, func() { do(many) }); all > 24*few {
		t.Errorf("%v for %d, and %v for %d", all, many, few, many/8)
	}
}

// processorTime is that of this thread.
func processorTime(t testing.TB, do func()) time.Duration {
	t.Helper()
	now := func() time.Duration {
		var at unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
			t.Fatal(err)
		}
		return time.Duration(at.Nano())
	}
	began := now()
	do()
	return now() - began
}
