package planning

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"claudebox/internal/ui/progress"
)

// waiting calls do, which may wait long for the Nix daemon, and shows a line of progress meanwhile. A signal cancels
// do's context and then ends this program; see [Interruptible].
func (k *Keeper) waiting(do func(context.Context, *progress.Line) error) error {
	p := progress.Begin(k.Caller.Stderr, k.Caller.Terminal, "looking packages up")
	defer p.Done()
	k.Store().Options.Log = p.Hear
	return Interruptible(k.Heeded, func(ctx context.Context) error { return do(ctx, p) })
}

// Interruptible calls do, which may take long and has to clean up. When Ctrl-C or another heeded signal comes, do's
// context is cancelled; after do has returned, the process ends by that signal, as it would have without us. A
// signal that comes in the last moment is not lost.
func Interruptible(heeded []syscall.Signal, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	received := make(chan os.Signal, 1)
	for _, s := range heeded {
		signal.Notify(received, s)
	}
	var came os.Signal
	var heard sync.WaitGroup
	heard.Go(func() {
		for came = range received {
			cancel()
		}
	})
	err := do(ctx)
	signal.Stop(received) // nothing is sent to the channel from here on
	close(received)
	heard.Wait()
	if came != nil {
		endBySignal(came.(syscall.Signal))
	}
	return err
}

// endBySignal ends the process by a signal, even if something catches it. For QUIT it exits with that signal's status
// instead: Go's runtime would print the stacks of all its threads.
func endBySignal(s syscall.Signal) {
	if s == syscall.SIGQUIT {
		os.Exit(128 + int(s))
	}
	signal.Reset(s)
	syscall.Kill(os.Getpid(), s)
	select {} // until it is delivered
}
