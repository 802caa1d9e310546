package aftermath

// Kill ends a session as SIGKILL does: the lock goes, the record stays.
func (s *Session) Kill() {
	s.sums.stop()
	s.disk.Stop()
	s.file.Close()
}
