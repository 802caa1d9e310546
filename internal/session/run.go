package session

// Run makes what the launch needs on the host, runs it, and takes away again
// what was made for it. Its error is a [launch.ExitError] when the agent's
// status is not 0.
func (s *Session) Run() error {
	if err := s.Instance.Prepare(); err != nil {
		return err
	}
	hold, err := s.project.Hold()
	if err != nil {
		return err
	}
	defer hold.Release()
	restore, err := copyInput()
	if err != nil {
		return err
	}
	defer restore()
	s.Launch.Outlive = s.project.Holds() || s.Launch.Plan.State == "ephemeral"
	return s.Launch.Run()
}
