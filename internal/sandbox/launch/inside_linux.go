package launch

import (
	"errors"
	"fmt"
	"io"
	"os"

	"claudebox/internal/linux/proctree"
)

// openInside opens the kernel's list of the children of process 1 inside
// (proc_pid_task_children(5)). An orphaned process becomes a child of process 1, so
// the list is not empty as long as any other process is inside. It returns nil if
// process 1 does not exist yet, or if the kernel has no such list.
func openInside(bwrap int) *os.File {
	init := proctree.Init(bwrap)
	f, err := os.Open(fmt.Sprintf("/proc/%d/task/%d/children", init, init))
	if err != nil {
		return nil
	}
	return f
}

// empty reports whether it is certain that no process is left inside but process 1,
// which starts no others. It is called when the agent has ended. If process 1 itself
// has ended the list is empty, too, which is right: all others ended before it
// (pid_namespaces(7)).
func (s *sandbox) empty() bool {
	if s.inside == nil {
		return false
	}
	var first [1]byte
	_, err := s.inside.Read(first[:])
	return errors.Is(err, io.EOF)
}

func (s *sandbox) close() {
	s.status.Close()
	s.inside.Close() // of a nil one, too
}
