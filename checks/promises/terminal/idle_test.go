//go:build lab

package terminal_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
)

// The parent waits in the kernel: over five seconds none of its threads is
// woken. No time is measured, only that nothing happens in it. What a start
// leaves to be done may take some of these times.
func TestTheWaitingParentSleepsAndIsSmall(t *testing.T) {
	w := newWorld(t)
	c := on(t, w.claudebox("-y"))
	agent := w.agent(t)
	before, after := "", wakeUps(t, c.cmd.Process.Pid)
	for end := time.Now().Add(patience); after != before; after = wakeUps(t, c.cmd.Process.Pid) {
		if time.Now().After(end) {
			t.Fatalf("woken: %q, then %q", before, after)
		}
		before = after
		time.Sleep(5 * time.Second)
	}
	const most = 20 << 10 // KiB, the guard's 4 MiB included; with its helpers it may have 44 MiB
	if got := statusField(t, fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid), "VmRSS"); got > most {
		t.Errorf("%d KiB resident, want at most %d", got, most)
	}
	agent.say(t, "exit 0")
	c.end(t)
}

// wakeUps names how often each thread went to sleep of its own accord.
func wakeUps(t *testing.T, pid int) string {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(threads) == 0 {
		t.Fatal("no threads: ", err)
	}
	var b strings.Builder
	for _, thread := range threads {
		fmt.Fprintln(&b, thread, statusField(t, thread, "voluntary_ctxt_switches"))
	}
	return b.String()
}

// statusField is a number of proc(5)'s status files.
func statusField(t *testing.T, file, field string) int {
	t.Helper()
	text := must.Read(t, file)
	_, rest, _ := strings.Cut("\n"+text, "\n"+field+":")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	n, err := strconv.Atoi(strings.TrimSuffix(number, " kB"))
	must.Do(t, err)
	return n
}
