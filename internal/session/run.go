package session

import (
	"sync"

	"claudebox/internal/diag"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/cover"
)

// Run sets up what the launch needs on the host, runs it, reports, and undoes the setup, also after an error. Its error
// is a [launch.ExitError] when the agent's status is not 0.
func (s *Session) Run() (err error) {
	// Until here the signals that would end claudebox end it: nothing is there yet
	// that would have to be taken away.
	s.runner.Post = launch.Listen(s.ignored)
	defer s.reap()
	for _, step := range []func() error{
		s.openNetwork, s.Instance.Prepare, s.openNix, s.openSecrets, s.openKeys,
		s.holdGiven, s.makeEmptyFolder,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	giveBack, err := takeFiles()
	if err != nil {
		return err
	}
	defer func() {
		if lost := giveBack(); err == nil {
			err = lost
		} else if lost != nil {
			diag.Print(s.caller.Stderr, lost) // the agent's status stays claudebox's
		}
	}()
	var after []*aftermath.Session
	s.runner.Before = func() (err error) {
		after, err = s.beginAftermath()
		return err
	}
	s.runner.Laid = func() error { return s.lookAgain(after) }
	s.runner.Hold = s.holdLimits
	var reports []aftermath.Report
	settle := sync.OnceFunc(func() {
		for _, session := range after {
			reports = append(reports, session.End())
		}
	})
	defer func() { settle(); s.announce(reports) }()
	modes := noteModes(s.Launch)
	err = s.launch(&after)
	s.mendModes(modes)
	settle() // before a word is said: whoever is to read it may keep us waiting
	s.endNetwork()
	s.keepRefused()
	s.endSecrets()
	s.endKeys()
	s.endState()
	return err
}

// reap waits for the processes that are to end by themselves.
func (s *Session) reap() {
	s.runner.Post.Reap()
	if s.network.reap != nil {
		s.network.reap()
	}
}

func (s *Session) openNetwork() (err error) {
	s.runner.Network, err = s.network.open(s.Launch)
	return err
}

// takeFiles replaces standard input and output that are files by copies and pipes. giveBack undoes it, and says which
// output was lost.
func takeFiles() (giveBack func() error, err error) {
	restore, err := copyInput()
	if err != nil {
		return nil, err
	}
	arrived, err := carryOutput()
	if err != nil {
		restore()
		return nil, err
	}
	return func() error {
		defer restore()
		return arrived()
	}, nil
}

// beginAftermath writes down what lies in the project and in the folders mounted
// read-write beside it, for the end of the session. On an error it returns what
// was begun till then.
func (s *Session) beginAftermath() (after []*aftermath.Session, err error) {
	agent := aftermath.Agent{Instance: s.Instance.Dir, Conversations: s.Instance.Conversations()}
	for _, given := range s.given() {
		begun, err := aftermath.Begin(s.folders.Home, given, agent)
		if err != nil {
			return after, err
		}
		after = append(after, begun)
		agent = aftermath.Agent{} // once is enough
	}
	return after, nil
}

// lookAgain refuses a secret that came into the project, or into a folder mounted
// read-write beside it, while the sandbox was set up. It looks only where another
// session lived meanwhile.
func (s *Session) lookAgain(after []*aftermath.Session) error {
	for i, given := range s.given() {
		if !after[i].Overlaps() {
			continue
		}
		if rel := given.Appeared(); rel != "" {
			return diag.Errorf("hide "+given.Path+"/"+rel, "start again",
				"it came there while the sandbox was set up: another session, or a program of yours, works there")
		}
	}
	return nil
}

// launch runs bwrap, and watches over the covers meanwhile. *after is set once runner.Before has run.
func (s *Session) launch(after *[]*aftermath.Session) error {
	var watches []*cover.Watch
	var lost uncovered
	s.runner.Started = func(bwrap int) {
		s.followSecrets()
		s.beginNix()
		for _, session := range *after {
			session.Follow()
		}
		s.keeper.keepNow()
		watches = s.watchCovers(bwrap, &lost)
	}
	s.runner.Launch = s.Launch
	err := s.runner.Run()
	for _, watch := range watches {
		watch.Close()
	}
	if rest := lost.rest(); rest != "" {
		diag.Note(s.caller.Stderr, rest)
	}
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

// holdGiven makes the stand-ins that the mounts of the project rely on, and
// those of the folders mounted read-write beside it.
func (s *Session) holdGiven() error {
	for _, given := range s.given() {
		hold, err := given.Hold()
		if err != nil {
			return err
		}
		s.holding = append(s.holding, hold)
	}
	return nil
}

// release takes the stand-ins away.
func (s *Session) release() {
	for _, hold := range s.holding {
		hold.Release()
	}
}
