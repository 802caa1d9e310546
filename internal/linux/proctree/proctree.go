// Package proctree reads which processes a process has started (proc_pid_task_children(5)), and whether they run. Its
// answers may be outdated when they arrive.
package proctree

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Children returns the processes that the first thread of a process has started, oldest first; nil if the process is
// gone.
func Children(pid int) []int {
	list, _ := ofThread(pid, strconv.Itoa(pid))
	return list
}

// All returns a process and all of its descendants, by whichever of their threads they were started.
func All(pid int) []int {
	list, _ := Whole(pid)
	return list
}

// Whole is [All], and reports whether all could be read: with no file to be had on this machine, the list is not whole.
func Whole(pid int) (list []int, whole bool) {
	list, whole = []int{pid}, true
	for i := 0; i < len(list); i++ {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", list[i]))
		for _, thread := range threads {
			children, fault := ofThread(list[i], thread.Name())
			if fault != nil && !isGone(fault) {
				err = fault
			}
			list = append(list, children...)
		}
		whole = whole && (err == nil || isGone(err))
	}
	return list, whole
}

// isGone reports whether an error says that there is no such process.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// Gone is the state of a process that is not there, Unknown that of one whose state cannot be read.
const (
	Gone    = 'X'
	Unknown = '?'
)

// State returns the state of a process and its process group (proc_pid_stat(5)); [Gone] and 0 if there is no such
// process, [Unknown] and 0 if it cannot be read. It reads what follows the last ")", as the process's name before that
// may hold anything.
func State(pid int) (state byte, group int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	switch {
	case err != nil && !isGone(err):
		return Unknown, 0
	case err != nil || len(fields) < 3:
		return Gone, 0
	}
	group, _ = strconv.Atoi(string(fields[2]))
	return fields[0][0], group
}

// ofThread returns the processes that one thread has started.
func ofThread(pid int, thread string) (list []int, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, thread))
	for word := range strings.FieldsSeq(string(text)) {
		child, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		list = append(list, child)
	}
	return list, err
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
