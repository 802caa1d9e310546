package launch

import (
	"errors"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/proctree"
)

// guarded are the signals that end a program. INT and QUIT come from the
// terminal to every process of the job, TERM and HUP from whoever ends it.
// bwrap's own processes do not heed them, see [Runner.fork].
var guarded = []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP}

// harmless are the signals that are caught only because they would end this
// process before what the agent left is judged: who reads what we say may have
// gone, or been ended by the agent. The call that they come with fails instead, as
// it does with SIGXFSZ, which Go does nothing about.
var harmless = []syscall.Signal{syscall.SIGPIPE}

// Post takes signals from its making to the end of the process. What comes before
// bwrap is started waits in it; from [Post.forwardTo] to [Post.stop] a goroutine
// hands it out. The zero Post gets none.
type Post struct {
	signals   chan os.Signal
	caughtAll sync.WaitGroup   // done when all are caught
	caught    []syscall.Signal // those of guarded that the caller had not ignored
	pauses    []syscall.Signal // those of stopping

	bwrap  int              // its process id
	whole  bool             // all of the sandbox dies with bwrap, see [Runner.fork]
	unsent []syscall.Signal // for the agent, as soon as there is one
	ending <-chan time.Time // when what does not end by itself is killed; nil: nobody has asked it to end
	before func()           // done before claudebox is stopped; nil: nothing
	end    chan struct{}    // closed when nothing is to be handed out any more; nil: it has not begun
	ended  chan struct{}    // closed when nothing is

	unreaped int // the process id of a bwrap that has nothing inside any more; 0: none

	mu    sync.Mutex
	last  syscall.Signal // the last that came; 0: none
	fault error          // what claudebox ended the sandbox for; nil: it did not
}

// Listen begins to catch the signals that would end or stop claudebox, but
// those that the caller has ignored: these stay ignored here, in bwrap and in
// the agent. What comes from here on waits for the agent, or ends the sandbox
// before it starts.
//
// It does so while the caller goes on: Go hands each signal from one thread to
// another, which takes half a millisecond for all. One that comes before ends
// claudebox as a kill does. [Runner.Run] waits for those that end it before it
// starts bwrap, and for all before the agent runs.
func Listen(ignored []string) *Post {
	const waiting = 64 // more than there are kinds of signals
	p := &Post{signals: make(chan os.Signal, waiting)}
	p.caught = filtered(guarded, func(s syscall.Signal) bool {
		return !slices.Contains(ignored, strings.TrimPrefix(unix.SignalName(s), "SIG"))
	})
	ours := func(s syscall.Signal) bool { return !signal.Ignored(s) }
	p.pauses = filtered(stopping, ours)
	unheard := filtered(harmless, ours)
	p.caughtAll.Go(func() {
		notify(p.signals, p.caught)
		notify(p.signals, p.pauses)
		notify(make(chan os.Signal, 1), unheard) // nobody waits for these
	})
	return p
}

// notify is [signal.Notify], which takes an empty list for all signals.
func notify(to chan os.Signal, list []syscall.Signal) {
	for _, s := range list {
		signal.Notify(to, s)
	}
}

func filtered(list []syscall.Signal, by func(syscall.Signal) bool) (some []syscall.Signal) {
	for _, s := range list {
		if by(s) {
			some = append(some, s)
		}
	}
	return some
}

// forwardTo begins to hand out what comes. whole says that all of the sandbox
// dies with bwrap.
func (p *Post) forwardTo(bwrap int, whole bool) {
	p.bwrap, p.whole = bwrap, whole
	p.end, p.ended = make(chan struct{}), make(chan struct{})
	go p.serve()
}

// stop ends that, and lets what stops a job do so by itself again. It is called
// before bwrap's process id is free for another process.
func (p *Post) stop() {
	if p.end == nil {
		return
	}
	close(p.end)
	<-p.ended
	p.end = nil
	for _, s := range p.pauses {
		_, _ = setAction(s, action{})
	}
}

// End ends the sandbox as a TERM does, whatever the caller ignores: the agent
// is asked to, and killed with all else inside when it has not after [grace].
// It never waits: one that is already asked to end needs no second word.
func (p *Post) End() {
	select {
	case p.signals <- syscall.SIGTERM:
	default:
	}
}

// pausing says what is done before a signal stops claudebox.
func (p *Post) pausing(do func()) { p.before = do }

// Reap waits for a bwrap that [Runner.Run] left to end by itself: a claudebox
// that ended first would leave it to a process 1 that may not reap, as in
// containers.
func (p *Post) Reap() {
	if p == nil || p.unreaped == 0 {
		return
	}
	_ = uninterrupted(func() error {
		_, err := syscall.Wait4(p.unreaped, nil, 0, nil)
		return err
	})
	p.unreaped = 0
}

func (p *Post) serve() {
	defer close(p.ended)
	for {
		var again <-chan time.Time
		if p.unsent = filtered(p.unsent, p.notYet); len(p.unsent) > 0 {
			again = time.After(settling)
		}
		select {
		case s := <-p.signals:
			p.handOut(s)
		case <-again:
		case <-p.ending:
			p.kill()
		case <-p.end:
			return
		}
	}
}

// handOut does what a signal is for, and those that wait behind it. Of those
// that stop a job, what came with or after the first would have been taken away
// by SIGCONT.
func (p *Post) handOut(first os.Signal) {
	paused := false
	for s := first; ; {
		switch s := s.(syscall.Signal); {
		case slices.Contains(guarded, s):
			p.deliver(s)
		case !paused:
			paused = true
			p.pause(s)
		}
		select {
		case s = <-p.signals:
		default:
			return
		}
	}
}

// lastSignal is the last signal that came for the sandbox; 0: none.
func (p *Post) lastSignal() syscall.Signal {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
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

// grace is how long an agent may take to end when TERM or HUP asked it to.
const grace = 3 * time.Second

// kill ends all that is inside, whatever it ignores: with the first process of
// a pid namespace all others go (pid_namespaces(7)).
func (p *Post) kill() {
	first := p.bwrap
	if !p.whole {
		first = proctree.Init(p.bwrap)
	}
	if first != 0 {
		syscall.Kill(first, syscall.SIGKILL)
	}
}

// deliver sends TERM and HUP to the agent itself, as bwrap forwards nothing, and
// gives it [grace] to end.
// INT and QUIT have reached it already: they are the terminal's. While there
// is no agent yet, each of them ends the sandbox before it starts; or it waits
// for the agent, where to kill bwrap would leave a sandbox running that is half
// set up.
func (p *Post) deliver(s syscall.Signal) {
	passed := s
	if s == syscall.SIGINT || s == syscall.SIGQUIT {
		passed = 0 // only asks whether there is an agent (kill(2))
	}
	p.mu.Lock()
	p.last = s
	p.mu.Unlock()
	if passed != 0 && p.ending == nil {
		p.ending = time.After(grace)
	}
	switch {
	case sendToAgent(p.bwrap, passed):
	case p.whole:
		syscall.Kill(p.bwrap, syscall.SIGKILL)
	default:
		p.unsent = append(p.unsent, s)
	}
}

// notYet reports whether there is no agent yet that a signal could be sent to.
func (p *Post) notYet(s syscall.Signal) bool { return !sendToAgent(p.bwrap, s) }

// sendToAgent signals the agent, and reports whether there is one. It is the
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
