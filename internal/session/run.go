package session

import (
	"claudebox/internal/diag"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/cover"
)

// running is a session while it runs: what is open and at work.
type running struct {
	*Session
	runner  launch.Runner
	after   []*aftermath.Session // of the folders that the agent may change
	reports []aftermath.Report   // on them, once they are settled
	lost    uncovered
}

// Run sets up what the launch needs on the host, runs it, reports, and undoes the setup, also after an error. Its error
// is a [launch.ExitError] when the agent's status is not 0.
func (s *Session) Run() (err error) {
	// Until here the signals that would end claudebox end it: nothing is there yet
	// that would have to be taken away.
	r := &running{Session: s, runner: launch.Runner{Post: launch.Listen(s.ignored)}}
	defer r.reap()
	for _, step := range []func() error{
		r.openNetwork, s.Instance.Prepare, s.openNix, s.openSecrets, s.keys.open,
		func() error { return s.hold(s.emptyFolder()) },
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
	defer func() { r.settle(); s.announce(r.reports) }()
	modes := noteModes(s.Launch)
	err = r.launch()
	s.mendModes(modes)
	r.settle() // before a word is said: whoever is to read it may keep us waiting
	s.network.end()
	s.keepRefused()
	s.secrets.end()
	s.keys.end()
	s.endState()
	return err
}

// reap waits for the processes that are to end by themselves.
func (r *running) reap() {
	r.runner.Post.Reap()
	if r.network.reap != nil {
		r.network.reap()
	}
}

func (r *running) openNetwork() (err error) {
	r.runner.Network, err = r.network.open(r.Launch)
	return err
}

// launch runs bwrap, and watches over the covers meanwhile.
func (r *running) launch() error {
	var watches []*cover.Watch
	r.runner.Launch, r.runner.Hold = r.Launch, r.holdLimits
	r.runner.Before = func() (err error) {
		agent := aftermath.Agent{Instance: r.Instance.Dir, Conversations: r.Instance.Conversations()}
		r.after, err = r.begin(r.folders.Home, agent)
		return err
	}
	r.runner.Laid = func() error { return r.lookAgain(r.after) }
	r.runner.Started = func(bwrap int) {
		r.secrets.follow(r.Instance.Guard())
		r.nix.begin()
		for _, session := range r.after {
			session.Follow()
		}
		r.keeper.keepNow()
		watches = r.watch(bwrap, r.tellUncovered)
	}
	err := r.runner.Run()
	for _, watch := range watches {
		watch.Close()
	}
	if rest := r.lost.rest(); rest != "" {
		diag.Note(r.caller.Stderr, rest)
	}
	return err
}

// settle judges, once, what was left in the folders that the agent may change.
func (r *running) settle() {
	for _, session := range r.after {
		r.reports = append(r.reports, session.End())
	}
	r.after = nil
}

func (s *Session) openNix() (err error) {
	if s.nix.dir != "" {
		s.Launch, err = s.nix.open(s.Launch, s.keeper.store())
	}
	return err
}

func (s *Session) openSecrets() error {
	return s.secrets.open(secretKeeper{&s.Instance, &s.secrets.refused})
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

// endState lets go of the agent's home, now that nobody writes there, and says
// what became of the login. The agent's status stays claudebox's, whatever
// fails.
func (s *Session) endState() {
	if err := s.Instance.Close(); err != nil {
		diag.Print(s.caller.Stderr, err)
	}
	for _, text := range s.Instance.Ended {
		if !s.options.NoReport {
			diag.Note(s.caller.Stderr, text)
		}
	}
}
