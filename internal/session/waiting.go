package session

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/nix/nixdaemon"
)

// Times of the progress line. What is over soon shows none; a terminal's line
// is redrawn as often as an eye follows, a log gets one now and then.
const (
	progressAfter  = 300 * time.Millisecond
	progressRedraw = 100 * time.Millisecond
	progressLog    = 10 * time.Second
)

// progress shows a person who waits for packages what is going on.
type progress struct {
	out      io.Writer
	terminal bool
	first    *time.Timer

	mu    sync.Mutex
	sum   nixdaemon.Progress
	text  string
	shown time.Time // of the last line; zero: none yet
}

// waiting does what the Nix daemon may take long for, with a line of progress,
// until it is done or a signal ends this program.
func (k *keeper) waiting(do func(context.Context, *progress) error) error {
	p := &progress{out: k.caller.Stderr, terminal: k.caller.Terminal, text: "looking packages up"}
	p.first = time.AfterFunc(progressAfter, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.show()
	})
	defer p.done()
	k.store().Options.Log = p.hear
	return interruptible(k.ignored, func(ctx context.Context) error { return do(ctx, p) })
}

// say writes a line that stays.
func (p *progress) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal && !p.shown.IsZero() {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	diag.Note(p.out, text)
}

// hear takes an event of the daemon in.
func (p *progress) hear(e nixdaemon.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.sum.Hear(e) {
		return
	}
	if text := p.sum.String(); text != "" {
		p.text = text
	}
	pause := progressLog
	if p.terminal {
		pause = progressRedraw
	}
	if !p.shown.IsZero() && time.Since(p.shown) >= pause {
		p.show()
	}
}

// show writes the line: over the last one on a terminal, else a new one.
func (p *progress) show() {
	p.shown = time.Now()
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[Kclaudebox: %s", p.text)
		return
	}
	fmt.Fprintf(p.out, "claudebox: %s\n", p.text)
}

// done takes a terminal's line away.
func (p *progress) done() {
	p.first.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal && !p.shown.IsZero() {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	p.shown = time.Time{}
}

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
