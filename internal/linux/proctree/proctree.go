// Package proctree reads which processes a process has started
// (proc_pid_task_children(5)), and whether they run. What it says may be old
// when it is said.
package proctree

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Children are those that the first thread of a process has started, oldest
// first. One that is gone has none.
func Children(pid int) []int { return ofThread(pid, strconv.Itoa(pid)) }

// All are a process, its children, and theirs, by all of their threads.
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

// State is the state of a process, and the process group that it is in
// (proc_pid_stat(5)). The name that stands before them may hold anything.
func State(pid int) (state byte, group int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if err != nil || len(fields) < 3 {
		return Gone, 0
	}
	group, _ = strconv.Atoi(string(fields[2]))
	return fields[0][0], group
}

// ofThread are those that one thread has started.
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

// Init is bwrap's process 1 inside: its last child, as one that was started
// before may still be about, see package storetree. Zero: there is none.
func Init(bwrap int) (init int) {
	for _, child := range Children(bwrap) {
		init = child
	}
	return init
}

// Agent is the first child of process 1 inside. Zero: there is none.
func Agent(init int) int {
	children := Children(init)
	if len(children) == 0 {
		return 0
	}
	return children[0]
}
