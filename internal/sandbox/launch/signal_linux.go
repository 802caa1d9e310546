package launch

import (
	"errors"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/proctree"
	"claudebox/internal/linux/selfpipe"
)

// guarded are the signals that end a program. INT and QUIT come from the
// terminal to every process of the job, TERM and HUP from whoever ends it.
// bwrap's own processes do not heed them, see [Launch.fork].
var guarded = []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP}

// harmless are the signals that are caught only because they would end this
// process before what the agent left is judged: who reads what we say may have
// gone, or been ended by the agent; what is written may be more than may be.
// The call that they come with fails instead.
var harmless = []syscall.Signal{syscall.SIGPIPE, syscall.SIGXFSZ}

// Post takes signals from its making to the end of the process. None is lost on
// the way: what comes while bwrap is being started waits here. It hands out what
// has come while [Post.await] waits for something else. The zero Post gets none.
type Post struct {
	pipe   *selfpipe.Pipe
	caught []syscall.Signal // those of guarded that the caller had not ignored
	pauses []syscall.Signal // those of pausing

	bwrap  int              // 0: not started yet, or gone
	whole  bool             // all of the sandbox dies with bwrap, see [Launch.fork]
	unsent []syscall.Signal // for the agent, as soon as there is one
	last   syscall.Signal   // the last that came; 0: none
	fault  error            // what claudebox ended the sandbox for; nil: it did not
}

// Listen begins to catch the signals that would end or stop claudebox, but
// those that the caller has ignored: these stay ignored here, in bwrap and in
// the agent. What comes from here on waits for the agent, or ends the sandbox
// before it starts.
func Listen(ignored []string) (*Post, error) {
	p := &Post{}
	p.caught = filtered(guarded, func(s syscall.Signal) bool {
		return !slices.Contains(ignored, strings.TrimPrefix(unix.SignalName(s), "SIG"))
	})
	ours := func(s syscall.Signal) bool { return !signal.Ignored(s) }
	p.pauses = filtered(pausing, ours)
	var err error
	if p.pipe, err = selfpipe.Catch(slices.Concat(p.caught, p.pauses, filtered(harmless, ours))...); err != nil {
		return nil, &diag.Error{Op: "catch signals", Err: err}
	}
	return p, nil
}

func filtered(list []syscall.Signal, by func(syscall.Signal) bool) (some []syscall.Signal) {
	for _, s := range list {
		if by(s) {
			some = append(some, s)
		}
	}
	return some
}

// await hands out what comes until an event of a file has come (poll(2)).
func (p *Post) await(fd int, events int16) error {
	for {
		next := -1
		if p.unsent = filtered(p.unsent, p.notYet); len(p.unsent) > 0 {
			next = 1
		}
		ready, err := p.pipe.Wait(fd, events, next)
		p.handOut()
		if ready || err != nil {
			return err
		}
	}
}

// during hands out what comes while something else waits, which takes a thread.
func (p *Post) during(wait func() error) error {
	over, end, err := os.Pipe()
	if err != nil {
		return &diag.Error{Op: "wait for the sandbox", Err: err}
	}
	defer over.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.await(int(over.Fd()), unix.POLLIN)
	}()
	err = wait()
	end.Close()
	<-done
	return err
}

// handOut does what the signals that have come are for. Of those that stop a
// job, what came with or after the first would have been taken away by SIGCONT.
func (p *Post) handOut() {
	paused := false
	for s := p.pipe.Next(); s != 0; s = p.pipe.Next() {
		switch {
		case slices.Contains(guarded, s):
			p.deliver(s)
		case slices.Contains(pausing, s) && !paused:
			paused = true
			p.pause(s)
		}
	}
}

// blocked runs begin with the caught signals blocked in the calling thread. A
// child inherits that, and so do bwrap's processes; the shim inside unblocks
// them for the agent (env(1), --default-signal). To ignore them instead would
// lose those that claudebox gets meanwhile.
func (p *Post) blocked(begin func() (pid int, err error)) (pid int, err error) {
	var set, before unix.Sigset_t
	for _, s := range p.caught {
		n := uint(s) - 1
		set.Val[n/64] |= 1 << (n % 64)
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, &before); err != nil {
		return 0, err
	}
	pid, err = begin()
	return pid, errors.Join(err, unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil))
}

// forwardTo begins to pass on what comes.
func (p *Post) forwardTo(bwrap int, whole bool) { p.bwrap, p.whole = bwrap, whole }

// stop ends all passing on. It is called before bwrap's process id is free
// for another process. What stops a job does so again by itself.
func (p *Post) stop() {
	p.bwrap, p.unsent = 0, nil
	for _, s := range p.pauses {
		_, _ = selfpipe.Set(s, selfpipe.Action{})
	}
}

// deliver sends TERM and HUP to the agent itself, as bwrap forwards nothing.
// INT and QUIT have reached it already: they are the terminal's. While there
// is no agent yet, each of them ends the sandbox before it starts; or it waits
// for the agent, where to kill bwrap would leave a sandbox running that is half
// set up.
func (p *Post) deliver(s syscall.Signal) {
	if p.bwrap == 0 {
		return
	}
	passed := s
	if s == syscall.SIGINT || s == syscall.SIGQUIT {
		passed = 0 // only asks whether there is an agent (kill(2))
	}
	p.last = s
	switch {
	case sendToAgent(p.bwrap, passed):
	case p.whole:
		syscall.Kill(p.bwrap, syscall.SIGKILL)
	default:
		p.unsent = append(p.unsent, s)
	}
}

// notYet tells whether there is no agent yet that a signal could be sent to.
func (p *Post) notYet(s syscall.Signal) bool { return !sendToAgent(p.bwrap, s) }

// sendToAgent signals the agent, and tells whether there is one. It is the
// first child of pid 1 inside.
func sendToAgent(bwrap int, s syscall.Signal) bool {
	init := proctree.Init(bwrap)
	agent := proctree.Agent(init)
	fd, err := unix.PidfdOpen(agent, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	// While it is still the child of pid 1, the descriptor is the agent's.
	return proctree.Agent(init) == agent && unix.PidfdSendSignal(fd, s, nil, 0) == nil
}
