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

	"claudebox/internal/proctree"
)

// guarded are the signals that end a program. INT and QUIT come from the
// terminal to every process of the job, TERM and HUP from whoever ends it.
// bwrap's own processes do not heed them, see [Launch.fork].
var guarded = []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP}

// post takes the guarded signals from its making to the end of the process.
// None is lost on the way: what comes while bwrap is being started waits here.
type post struct {
	caught   []os.Signal // what the caller had ignored is not among them
	received chan os.Signal

	mu    sync.Mutex
	bwrap int            // 0: not started yet, or gone
	whole bool           // all of the sandbox dies with bwrap, see [Launch.fork]
	last  syscall.Signal // the last that came; 0: none
	fault error          // what claudebox ended the sandbox for; nil: it did not
}

// Signals are those that would end claudebox, from [Listen] on.
type Signals <-chan *post

// Listen begins to catch the signals that would end claudebox, but those that
// the caller has ignored: what comes from here on waits for the agent, or ends
// the sandbox before it starts. It takes two threads that wait for each other,
// as long as much of what else comes before the start, so it goes on beside
// that.
func Listen(ignored []string) Signals {
	caught := make(chan *post, 1)
	go func() { caught <- openPost(ignored) }()
	return caught
}

// openPost leaves alone what the caller has ignored: it stays ignored here, in
// bwrap and in the agent.
func openPost(ignored []string) *post {
	p := &post{received: make(chan os.Signal, 16)}
	for _, s := range guarded {
		name := unix.SignalName(s.(syscall.Signal))
		if !slices.Contains(ignored, strings.TrimPrefix(name, "SIG")) {
			p.caught = append(p.caught, s)
			signal.Notify(p.received, s)
		}
	}
	stops := make(chan os.Signal, 4)
	for _, s := range pausing {
		if !signal.Ignored(s) {
			signal.Notify(stops, s)
		}
	}
	go p.pauses(stops)
	// Who reads what we say may have gone, or been ended by the agent; what is
	// written may be more than may be. Go would end this process then, before
	// what the agent left is judged: let the call fail instead.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGXFSZ)
	return p
}

// blocked runs begin with the caught signals blocked in the calling thread. A
// child inherits that, and so do bwrap's processes; the shim inside unblocks
// them for the agent (env(1), --default-signal). To ignore them instead would
// lose those that claudebox gets meanwhile.
func (p *post) blocked(begin func() (pid int, err error)) (pid int, err error) {
	var set, before unix.Sigset_t
	for _, s := range p.caught {
		n := uint(s.(syscall.Signal)) - 1
		set.Val[n/64] |= 1 << (n % 64)
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, &before); err != nil {
		return 0, err
	}
	pid, err = begin()
	return pid, errors.Join(err, unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil))
}

// forwardTo begins to pass on what comes.
func (p *post) forwardTo(bwrap int, whole bool) {
	p.bwrap, p.whole = bwrap, whole
	go func() {
		for s := range p.received {
			p.deliver(s.(syscall.Signal))
		}
	}()
}

// stop ends all passing on. It is called before bwrap's process id is free
// for another process.
func (p *post) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bwrap = 0
}

// ended is what claudebox ended the sandbox for; nil: it did not.
func (p *post) ended() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}

// latest is the last signal that came, which is what ended a sandbox whose
// agent has not run; 0: none came.
func (p *post) latest() syscall.Signal {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// deliver sends TERM and HUP to the agent itself, as bwrap forwards nothing.
// INT and QUIT have reached it already: they are the terminal's. While there
// is no agent yet, each of them ends the sandbox before it starts.
func (p *post) deliver(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
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
		awaitAgent(p.bwrap, s)
	}
}

// awaitAgent signals the agent as soon as there is one. To kill bwrap would
// leave a sandbox running that is half set up.
func awaitAgent(bwrap int, s syscall.Signal) {
	for !sendToAgent(bwrap, s) {
		var gone unix.Siginfo
		err := unix.Waitid(unix.P_PID, bwrap, &gone, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
		if err != nil || gone.Signo != 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

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
