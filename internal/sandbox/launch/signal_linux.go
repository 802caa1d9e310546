package launch

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/proctree"
)

// guarded are the signals that usually end a program. The terminal sends INT and
// QUIT to every process of the job; TERM and HUP come from whoever wants to end it.
// They do not end bwrap's own processes, see [Runner.start].
var guarded = []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP}

// Heeded returns those of the guarded signals that were not ignored when claudebox
// was started; nohup, or a script with a background job, ignores some. It must be
// called before any signal is caught, because Go forgets then what was ignored. If
// QUIT was ignored, Go's runtime catches it all the same and does not report that.
// Shells ignore QUIT for a background job together with INT (POSIX, 2.11), so QUIT
// counts as ignored if INT is.
func Heeded() []syscall.Signal {
	if signal.Ignored(syscall.SIGINT) {
		signal.Ignore(syscall.SIGQUIT)
	}
	return notIgnored(guarded)
}

func notIgnored(list []syscall.Signal) []syscall.Signal {
	return slices.DeleteFunc(slices.Clone(list), func(s syscall.Signal) bool { return signal.Ignored(s) })
}

// Signals receives the signals for claudebox, from its creation to [Signals.Release]. Signals that come before bwrap is
// started are queued, and [Signals.Interrupted] asks for them; from [Signals.forwardTo] to [Signals.stop] a goroutine
// handles them. The zero Signals receives none.
type Signals struct {
	signals   chan os.Signal
	lost      chan struct{}    // has one when a protection is lost
	caughtAll sync.WaitGroup   // done when all signals are being caught
	caught    []syscall.Signal // the signals that are [Heeded]
	pauses    []syscall.Signal // the signals in stopping that are not ignored

	bwrap  int              // bwrap's process id
	ending <-chan time.Time // fires when the sandbox is to be killed; nil: no signal has asked it to end
	before func()           // called before claudebox stops itself; nil: nothing
	end    chan struct{}    // closed to end the goroutine; nil: it does not run
	ended  chan struct{}    // closed when the goroutine has ended

	mu    sync.Mutex
	last  syscall.Signal // the last signal for the sandbox; 0: none
	fault error          // why claudebox killed the sandbox; nil: it did not
}

// Listen begins to catch the signals that would end or stop claudebox; of those
// that would end it only the heeded ones, see [Heeded]. Signals that the caller of
// claudebox ignored stay ignored, in bwrap and in the agent, too. A signal that comes
// from now on is sent to the agent when it runs, or ends the sandbox before it starts.
//
// Catching begins in the background: Go hands each signal from one thread to
// another, which takes half a millisecond for all. A signal that comes before that
// ends claudebox as usual. [Runner.Run] waits until the signals are caught before the agent runs.
func Listen(heeded []syscall.Signal) *Signals {
	const waiting = 64 // more than there are kinds of signals
	p := &Signals{
		signals: make(chan os.Signal, waiting), lost: make(chan struct{}, 1),
		caught: heeded, pauses: notIgnored(stopping),
	}
	p.caughtAll.Go(func() {
		notify(p.signals, p.caught)
		notify(p.signals, p.pauses)
		// SIGPIPE is caught only so that it does not end this process before the files that the agent left are
		// checked: the reader of our output may have ended, perhaps killed by the agent. The write then fails with an
		// error instead, as it does with SIGXFSZ, about which Go does nothing.
		if !signal.Ignored(syscall.SIGPIPE) {
			signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // nothing reads this channel
		}
	})
	return p
}

// notify catches each signal of a list. [signal.Notify] itself takes an empty list to mean all signals, and does not
// know which had their default action meanwhile.
func notify(to chan os.Signal, list []syscall.Signal) {
	uncaught.Lock()
	defer uncaught.Unlock()
	for _, s := range list {
		signal.Notify(to, s)
		if caught, is := uncaught.by[s]; is {
			_, _ = setAction(s, caught)
			delete(uncaught.by, s)
		}
	}
}

// uncaught are the signals that were caught and have their default action, with the action by which they were.
var uncaught = struct {
	sync.Mutex
	by map[syscall.Signal]action
}{by: map[syscall.Signal]action{}}

// uncatch gives a signal its default action, until it is caught again. [signal.Reset] is not enough, see [setAction],
// and takes a tenth of a millisecond for each.
func uncatch(s syscall.Signal) {
	uncaught.Lock()
	defer uncaught.Unlock()
	if caught, err := setAction(s, action{}); err == nil && caught != (action{}) {
		uncaught.by[s] = caught
	}
}

// forwardTo starts the goroutine that handles signals for the sandbox of bwrap, a
// process id.
func (sig *Signals) forwardTo(bwrap int) {
	sig.bwrap = bwrap
	sig.end, sig.ended = make(chan struct{}), make(chan struct{})
	go sig.serve()
}

// stop ends the goroutine that forwardTo started, if any, and restores the default
// action of the signals that stop a job. It must be called before bwrap is reaped:
// after that its process id may belong to another process.
func (sig *Signals) stop() {
	if sig.end == nil {
		return
	}
	close(sig.end)
	<-sig.ended
	sig.end = nil
	for _, s := range sig.pauses {
		uncatch(s)
	}
}

// Interrupted returns the [ExitError] of a signal that came before bwrap is started and is to end claudebox; nil if
// none did. Signals that stop a job stay in the queue.
func (sig *Signals) Interrupted() error {
	for range len(sig.signals) {
		s := (<-sig.signals).(syscall.Signal)
		if slices.Contains(guarded, s) {
			return exit(128 + int(s))
		}
		select {
		case sig.signals <- s:
		default: // the queue is full of others
		}
	}
	return nil
}

// Interruptible calls do with a context that ends when a signal comes that is to end claudebox. It then returns the
// [ExitError] of that. Signals that stop a job stay in the queue.
func (sig *Signals) Interruptible(do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- do(ctx) }()
	var aside []os.Signal
	defer func() {
		for _, s := range aside {
			select {
			case sig.signals <- s:
			default: // the queue is full of others
			}
		}
	}()
	for {
		select {
		case err := <-ended:
			return err
		case s := <-sig.signals:
			if !slices.Contains(guarded, s.(syscall.Signal)) {
				aside = append(aside, s)
				continue
			}
			cancel()
			<-ended
			return exit(128 + int(s.(syscall.Signal)))
		}
	}
}

// Release stops catching signals: they end this process as usual. It is called when the session has ended and nothing
// is left to undo.
func (sig *Signals) Release() {
	sig.caughtAll.Wait()
	for _, s := range sig.caught {
		uncatch(s)
	}
}

// End kills everything inside, where a protection is lost: an agent gets no time to use that. The status is that of a
// TERM. End never blocks.
func (sig *Signals) End() {
	select {
	case sig.lost <- struct{}{}:
	default: // it is being killed already
	}
}

// serve handles signals until [Signals.stop].
func (sig *Signals) serve() {
	defer close(sig.ended)
	for {
		select {
		case s := <-sig.signals:
			sig.handOut(s)
		case <-sig.lost:
			sig.note(syscall.SIGTERM)
			sig.kill()
		case <-sig.ending:
			sig.kill()
		case <-sig.end:
			return
		}
	}
}

// handOut handles a signal and all others in the queue. Of the signals that stop a
// job only the first counts: SIGCONT would have discarded the pending others. None counts once the sandbox is to end:
// a stopped agent that is to end and go on, as a shell's kill has it, may stop the job again by using the terminal.
func (sig *Signals) handOut(first os.Signal) {
	paused := false
	for s := first; ; {
		switch s := s.(syscall.Signal); {
		case slices.Contains(guarded, s):
			sig.deliver(s)
		case !paused && sig.ending == nil:
			paused = true
			sig.pause(s)
		}
		select {
		case s = <-sig.signals:
		default:
			return
		}
	}
}

// lastSignal returns the last signal that came for the sandbox, or 0.
func (sig *Signals) lastSignal() syscall.Signal {
	sig.mu.Lock()
	defer sig.mu.Unlock()
	return sig.last
}

// note keeps a signal as the last one.
func (sig *Signals) note(s syscall.Signal) {
	sig.mu.Lock()
	defer sig.mu.Unlock()
	sig.last = s
}

// grace is how long an agent may take to end after TERM or HUP.
const grace = 3 * time.Second

// kill kills everything inside: when bwrap, the first process of a pid namespace, is killed,
// the kernel kills all others (pid_namespaces(7)).
func (sig *Signals) kill() { syscall.Kill(sig.bwrap, syscall.SIGKILL) }

// deliver sends TERM and HUP to the agent, as bwrap forwards no signals, and gives it
// [grace] to end. INT and QUIT are sent only if they came to claudebox alone, see [gotIt]; the agent may go on after
// them. If there is no agent yet, any of the four kills the sandbox before it starts.
func (sig *Signals) deliver(s syscall.Signal) {
	sig.note(s)
	if s == syscall.SIGINT || s == syscall.SIGQUIT {
		if agent := proctree.Agent(proctree.Init(sig.bwrap)); agent != 0 && gotIt(agent, s) {
			return
		}
	} else if sig.ending == nil {
		sig.ending = time.After(grace)
	}
	if !sendToAgent(sig.bwrap, s) {
		sig.kill()
	}
}

// sendToAgent sends a signal to the agent, which is the first child of pid 1 inside.
// It reports whether there is an agent; if not, nothing is sent.
func sendToAgent(bwrap int, s syscall.Signal) bool {
	init := proctree.Init(bwrap)
	agent := proctree.Agent(init)
	fd, err := unix.PidfdOpen(agent, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	// If the process is still the agent now, the descriptor is not of another process with a reused id.
	return proctree.Agent(init) == agent && unix.PidfdSendSignal(fd, s, nil, 0) == nil
}
