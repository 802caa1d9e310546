package session

import (
	"claudebox/internal/aftermath"
	"claudebox/internal/cover"
	"claudebox/internal/diag"
	"claudebox/internal/launch"
)

// Run makes what the launch needs on the host, runs it, and takes away again
// what was made for it. Its error is a [launch.ExitError] when the agent's
// status is not 0.
func (s *Session) Run() (err error) {
	s.listen()
	s.Launch.Signals = s.signals
	if err := s.network.open(&s.Launch); err != nil {
		return err
	}
	if err := s.Instance.Prepare(); err != nil {
		return err
	}
	if err := s.holdGiven(); err != nil {
		return err
	}
	defer s.release()
	if err := s.makeEmptyFolder(); err != nil {
		return err
	}
	restore, err := copyInput()
	if err != nil {
		return err
	}
	defer restore()
	arrived, err := carryOutput()
	if err != nil {
		return err
	}
	defer func() {
		if lost := arrived(); err == nil {
			err = lost
		} else if lost != nil {
			diag.Print(s.caller.Stderr, lost) // the agent's status stays claudebox's
		}
	}()
	var after []*aftermath.Session
	var reports []aftermath.Report
	settle := func() {
		for _, session := range after {
			reports = append(reports, session.End())
		}
		after = nil
	}
	defer func() { settle(); s.announce(reports) }()
	for i, given := range s.given() {
		conversations := s.Instance.Conversations()
		if i > 0 {
			conversations = nil // once is enough
		}
		begun, err := aftermath.Begin(s.folders.Home, given, conversations)
		if err != nil {
			return err
		}
		after = append(after, begun)
	}
	var watches []*cover.Watch
	s.Launch.Started = func(bwrap int) {
		s.Instance.Follow()
		s.keepNow()
		s.ahead.learn(s.Launch)
		watches = s.watchCovers(bwrap)
	}
	err = s.Launch.Run()
	for _, watch := range watches {
		watch.Close()
	}
	settle() // before a word is said: whoever is to read it may keep us waiting
	s.endNetwork()
	s.endState()
	return err
}

// endState lets go of the agent's home, now that nobody writes there, and says
// what became of the login. The agent's status stays claudebox's, whatever
// fails.
func (s *Session) endState() {
	if err := s.Instance.Close(); err != nil {
		diag.Print(s.caller.Stderr, err)
	}
	for _, text := range s.Instance.Ended {
		if !s.report.silent {
			diag.Note(s.caller.Stderr, text)
		}
	}
}

// listen begins to catch the signals that would end claudebox.
func (s *Session) listen() {
	if s.signals == nil {
		s.signals = launch.Listen(s.ignored)
	}
}

// holdGiven makes the placeholders that the mounts of what is given away rely
// on, where that is not done yet.
func (s *Session) holdGiven() error {
	for _, given := range s.given()[len(s.holding):] {
		hold, err := given.Hold()
		if err != nil {
			return err
		}
		s.holding = append(s.holding, hold)
	}
	return nil
}

// release takes the placeholders away. It may be called twice.
func (s *Session) release() {
	for _, hold := range s.holding {
		hold.Release()
	}
}
