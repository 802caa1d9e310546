// Package proctree reads which processes a process has started (proc_pid_task_children(5)), and whether they run. Its
// answers may be outdated when they arrive.
package proctree

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Children returns the processes that the first thread of a process has started, oldest first; nil if the process is
// gone.
func Children(pid int) []int { return ofThread(pid, strconv.Itoa(pid)) }

// All returns a process and all of its descendants, by whichever of their threads they were started.
func All(pid int) []int {
	list := []int{pid}
	for i := 0; i < len(list); i++ {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", list[i]))
		if err != nil {
			continue // it is gone
		}
		for _, thread := range threads {
			list = append(list, ofThread(list[i], thread.Name())...)
		}
	}
	return list
}

// Gone is the state of a process that is not there.
const Gone = 'X'

// State returns the state of a process and its process group (proc_pid_stat(5)); [Gone] and 0 if there is no such
// process. It reads what follows the last ")", as the process's name before that may hold anything.
func State(pid int) (state byte, group int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if err != nil || len(fields) < 3 {
		return Gone, 0
	}
	group, _ = strconv.Atoi(string(fields[2]))
	return fields[0][0], group
}

// ofThread returns the processes that one thread has started.
func ofThread(pid int, thread string) []int {
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

// Init returns bwrap's process 1 inside, which is the last child that bwrap started: the process that made a store for
// it (package storetree) may still run. 0: there is none.
func Init(bwrap int) (init int) {
	for _, child := range Children(bwrap) {
		init = child
	}
	return init
}

// Agent returns the first child of process 1 inside; 0: there is none.
func Agent(init int) int {
	children := Children(init)
	if len(children) == 0 {
		return 0
	}
	return children[0]
}
