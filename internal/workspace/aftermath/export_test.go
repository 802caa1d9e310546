package aftermath

import (
	"syscall"
	"time"

	"claudebox/internal/workspace/project"
)

// RecordOf is what is kept of a session in a project.
func RecordOf(dir string, began time.Time) string {
	return string(record{Began: began.UnixNano(), Scope: project.Scope{Path: dir}}.encode())
}

// Kill ends a session as SIGKILL does: the lock goes, the record stays. A
// program that another test is just starting holds the lock until its execve.
func (s *Session) Kill() {
	s.sums.stop()
	s.disk.Stop()
	syscall.ForkLock.Lock()
	s.file.Close()
	syscall.ForkLock.Unlock()
}
