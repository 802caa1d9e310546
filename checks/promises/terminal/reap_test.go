//go:build lab

package terminal_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
)

// A12: a process that claudebox leaves is for process 1 to reap, which in a
// container often does not. Here this test is in its place.
func TestNothingIsLeftForProcess1ToReap(t *testing.T) {
	must.Do(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	for tier, command := range map[string]string{"full": "true", "none": "exit 3", "allow": "true", "full ": "setsid sleep inf & exit 0"} {
		t.Run(tier+command, func(t *testing.T) {
			w := newWorld(t)
			w.profile(t, "probe", `agent: {command: [bash, -c, "`+command+`"]}`, "network: {tier: "+tier+map[string]string{"allow": ", allow: [example.org]"}[tier]+"}")
			for range 5 {
				before := children() // shells of other tests
				run(t, w.claudebox("-y"))
				for pid, stat := range children() {
					if before[pid] == "" {
						t.Errorf("left: %s", stat)
						syscall.Wait4(pid, nil, 0, nil)
					}
				}
			}
		})
	}
}

// children are those of this process, by their id.
func children() map[int]string {
	left := map[int]string{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		var pid, parent int
		var state string
		stat, _ := os.ReadFile(name)
		before, rest, _ := bytes.Cut(stat, []byte(") "))
		fmt.Sscan(string(before), &pid)
		if fmt.Sscan(string(rest), &state, &parent); parent == os.Getpid() && parent != 0 {
			left[pid] = string(stat)
		}
	}
	return left
}
