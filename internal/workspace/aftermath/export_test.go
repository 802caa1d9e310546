package aftermath

import (
	"time"

	"claudebox/internal/workspace/project"
)

// RecordOf is what is kept of a session in a project.
func RecordOf(dir string, began time.Time) string {
	return string(record{Began: began.UnixNano(), Scope: project.Scope{Path: dir}}.encode())
}

// Kill ends a session as SIGKILL does: the lock goes, the record stays.
func (s *Session) Kill() {
	s.sums.stop()
	s.disk.Stop()
	s.file.Close()
}
