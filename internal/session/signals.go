package session

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// endings are the signals that end a program, by the names that env(1) takes.
var endings = map[string]os.Signal{
	"INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP,
}

// ignoredSignals are those that the caller had ignored when claudebox
// started: nohup, or a background job of a script. It is asked before any
// signal is caught, as Go forgets it then. Go's runtime takes QUIT over from a
// caller who ignores it and cannot tell. Shells ignore it for a background
// job together with INT (POSIX, 2.11), which therefore stands for both.
func ignoredSignals() []string {
	if signal.Ignored(syscall.SIGINT) {
		signal.Ignore(syscall.SIGQUIT)
	}
	var names []string
	for name, s := range endings {
		if signal.Ignored(s) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// interruptible does what may take long and has to clean up when Ctrl-C or
// another signal ends it. Then the process ends by that signal, as it would
// have without us: one that comes in the last moment is not lost.
func interruptible(ignored []string, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	received := make(chan os.Signal, 1)
	for name, ending := range endings {
		if !slices.Contains(ignored, name) {
			signal.Notify(received, ending)
		}
	}
	came := make(chan os.Signal, 1)
	go func() {
		for s := range received {
			came <- s
			cancel()
		}
		close(came)
	}()
	err := do(ctx)
	signal.Stop(received) // nothing is sent to the channel from here on
	close(received)
	if s, ok := <-came; ok {
		dieOf(s.(syscall.Signal))
	}
	return err
}

// dieOf ends the process by a signal, whoever catches it. For QUIT, Go's
// runtime would print the stacks of all its threads.
func dieOf(s syscall.Signal) {
	if s == syscall.SIGQUIT {
		os.Exit(128 + int(s))
	}
	signal.Reset(s)
	syscall.Kill(os.Getpid(), s)
	select {} // until it is delivered
}
