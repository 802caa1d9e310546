// Package progress shows a person who waits for the Nix daemon what it does, in one line.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/nix/nixdaemon"
)

// Times of the line. A wait shorter than after shows none; a terminal's
// line is redrawn as often as an eye can follow, a log gets a line now and then.
const (
	after  = 300 * time.Millisecond
	redraw = 100 * time.Millisecond
	log    = 10 * time.Second
)

// Line shows a person who waits for packages what is going on.
type Line struct {
	out      io.Writer
	terminal bool
	first    *time.Timer

	mu    sync.Mutex
	sum   nixdaemon.Progress
	text  string
	shown time.Time // when the last line was written; zero: not yet
}

// Begin begins a line that says text at first. It is shown when the wait takes long.
func Begin(out io.Writer, terminal bool, text string) *Line {
	p := &Line{out: out, terminal: terminal, text: text}
	p.first = time.AfterFunc(after, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.show()
	})
	return p
}

// Say writes a line that stays.
func (p *Line) Say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	diag.Note(p.out, text)
}

// clear removes the line from a terminal.
func (p *Line) clear() {
	if p.terminal && !p.shown.IsZero() {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// Hear handles an event from the daemon's log.
func (p *Line) Hear(e nixdaemon.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.sum.Hear(e) {
		return
	}
	if text := p.sum.String(); text != "" {
		p.text = text
	}
	pause := log
	if p.terminal {
		pause = redraw
	}
	if !p.shown.IsZero() && time.Since(p.shown) >= pause {
		p.show()
	}
}

// show writes the line: over the last one on a terminal, else a new one.
func (p *Line) show() {
	p.shown = time.Now()
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[Kclaudebox: %s", p.text)
		return
	}
	fmt.Fprintf(p.out, "claudebox: %s\n", p.text)
}

// Done ends the line, and removes the line from a terminal.
func (p *Line) Done() {
	p.first.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.shown = time.Time{}
}
