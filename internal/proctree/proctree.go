// Package proctree reads which processes a process has started
// (proc_pid_task_children(5)). What it says may be old when it is said.
package proctree

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Children are those that the first thread of a process has started, oldest
// first. One that is gone has none.
func Children(pid int) []int { return OfThread(pid, strconv.Itoa(pid)) }

// OfThread are those that one thread has started.
func OfThread(pid int, thread string) []int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, thread))
	if err != nil {
		return nil
	}
	var list []int
	for word := range strings.FieldsSeq(string(text)) {
		child, err := strconv.Atoi(word)
		if err != nil {
			return nil
		}
		list = append(list, child)
	}
	return list
}

// Init is bwrap's process 1 inside: its last child, as one that was started
// before may still be about, see package storetree. Zero: there is none.
func Init(bwrap int) int {
	children := Children(bwrap)
	if len(children) == 0 {
		return 0
	}
	return children[len(children)-1]
}

// Agent is the first child of process 1 inside. Zero: there is none.
func Agent(init int) int {
	children := Children(init)
	if len(children) == 0 {
		return 0
	}
	return children[0]
}
