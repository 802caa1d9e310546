package session

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/nix/nixdaemon"
)

// Times of the progress line. A wait shorter than progressAfter shows none; a terminal's
// line is redrawn as often as an eye can follow, a log gets a line now and then.
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
	shown time.Time // when the last line was written; zero: not yet
}

// waiting calls do, which may wait long for the Nix daemon, and shows a line of progress meanwhile. A signal cancels
// do's context and then ends this program; see [interruptible].
func (k *keeper) waiting(do func(context.Context, *progress) error) error {
	p := &progress{out: k.caller.Stderr, terminal: k.caller.Terminal, text: "looking packages up"}
	p.first = time.AfterFunc(progressAfter, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.show()
	})
	defer p.done()
	k.store().Options.Log = p.hear
	return interruptible(k.heeded, func(ctx context.Context) error { return do(ctx, p) })
}

// say writes a line that stays.
func (p *progress) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	diag.Note(p.out, text)
}

// clear removes the line from a terminal.
func (p *progress) clear() {
	if p.terminal && !p.shown.IsZero() {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// hear handles an event from the daemon's log.
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

// done ends the progress, and removes the line from a terminal.
func (p *progress) done() {
	p.first.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.shown = time.Time{}
}

// interruptible calls do, which may take long and has to clean up. When Ctrl-C or another heeded signal comes, do's
// context is cancelled; after do has returned, the process ends by that signal, as it would have without us. A
// signal that comes in the last moment is not lost.
func interruptible(heeded []syscall.Signal, do func(context.Context) error) error {
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
