package launch

import (
	"errors"
	"fmt"
	"io"
	"os"

	"claudebox/internal/linux/proctree"
)

// openInside opens the list of the children of bwrap's process 1 inside
// (proc_pid_task_children(5)). Whatever has lost its parent becomes a child of
// process 1, so as long as there is anybody else inside it has one. Nil: there
// is no such process yet, or the kernel keeps no such list.
func openInside(bwrap int) *os.File {
	init := proctree.Init(bwrap)
	f, err := os.Open(fmt.Sprintf("/proc/%d/task/%d/children", init, init))
	if err != nil {
		return nil
	}
	return f
}

// empty reports whether it is certain that no process is left inside but process 1, which
// starts none. It is asked when the agent has ended. Of a process that is gone
// the list is empty as well: with process 1 all others have gone before it
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
	if s.inside != nil {
		s.inside.Close()
	}
}
