package launch

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// forward sends a signal that claudebox received on to the agent itself:
// bwrap forwards nothing. While there is no agent yet, the sandbox is killed
// before it starts.
func forward(bwrap int, s syscall.Signal) {
	for _, pid := range []int{agentOf(bwrap), bwrap} {
		if pid == bwrap {
			s = syscall.SIGKILL
		}
		if pid != 0 && syscall.Kill(pid, s) == nil {
			return
		}
	}
}

// agentOf finds the agent: bwrap's monitor has one child, which is pid 1
// inside, and the first child of that is the agent. Zero: not yet, or gone.
func agentOf(bwrap int) int {
	if init := firstChild(bwrap); init != 0 {
		return firstChild(init)
	}
	return 0
}

// firstChild reads /proc/PID/task/PID/children (proc(5)), oldest first.
func firstChild(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	child, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		return 0
	}
	return child
}
