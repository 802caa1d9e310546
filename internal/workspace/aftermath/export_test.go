package aftermath

import (
	"context"
	"errors"
	"os"
	"time"

	"claudebox/internal/workspace/project"
)

// RecordOf is what is kept of a session in a project.
func RecordOf(dir string, began time.Time) string {
	return string(encoded(recordForm, record{Noted: Noted{Began: moment{Wall: began.UnixNano()}, Scope: project.Scope{Path: dir}}}))
}

// Dead is how many sessions are taken for dead.
func Dead(home string) int {
	_, dead, _ := others(home)
	defer closeAll(dead)
	return len(dead)
}

// SetBack has the machine's clock be set back since the session began.
func (s *Session) SetBack(by time.Duration) error {
	s.record.Began.Wall += by.Nanoseconds()
	_, err := s.file.WriteAt(encoded(recordForm, s.record), 0)
	ahead := time.Now().Add(by)
	return errors.Join(err, os.Chtimes(s.file.Name(), ahead, ahead))
}

// ReadNow reads what files hold, as a session does a moment after it began.
func (s *Session) ReadNow() {
	s.held()
	held := take(context.Background(), s.record.Scope.Path, s.before.Files)
	s.held = func() map[string]content { return held }
}

// Kill ends a session as SIGKILL does: the lock goes, the record stays.
func (s *Session) Kill() {
	s.held()
	s.disk.Stop()
	release(s.file)
}

// Break ends a session as SIGKILL does when all was repaired and the report is not finished.
func (s *Session) Break() {
	s.record.begun(s.file)
	r := s.record.settle(s.home, s.tree, s)
	r.Told(false)
	s.disk.Stop()
	release(s.file)
}

// KillAsBefore is [Session.Kill] of the claudebox before this one: its record has the form of then.
func (s *Session) KillAsBefore() {
	r := s.record
	was := recordBefore{Places: r.Places, Held: r.Held}
	was.Noted.Began, was.Noted.Scope, was.Noted.Inode, was.Noted.ID = r.Began, r.Scope, r.Inode, r.ID
	was.Noted.Before, was.Noted.Tracked = r.Before, r.Tracked
	content := encoded(formBefore, was)
	_, _ = s.file.WriteAt(content, 0)
	_ = s.file.Truncate(int64(len(content)))
	s.Kill()
}
