package devshell

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/diag/layout"
)

// silence is how long nothing is shown: most evaluations are over by then.
const silence = 300 * time.Millisecond

// progress is one line on the terminal that says what is waited for. Without a terminal it shows nothing.
type progress struct {
	mu       sync.Mutex
	out      *os.File
	terminal bool
	what     string
	began    time.Time
	last     time.Time
	text     string
	timer    *time.Timer
}

func newProgress(out *os.File, what string) *progress {
	p := &progress{out: out, what: what, began: time.Now()}
	_, err := unix.IoctlGetTermios(int(out.Fd()), unix.TCGETS)
	p.terminal = err == nil
	if p.terminal {
		p.timer = time.AfterFunc(silence, func() { p.show("") })
	}
	return p
}

// show has the line say what Nix said at last.
func (p *progress) show(said string) {
	if !p.terminal {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if said != "" {
		p.text = said
	}
	const rate = 100 * time.Millisecond
	if now := time.Now(); now.Sub(p.began) >= silence && now.Sub(p.last) >= rate {
		p.last = now
		columns := 80
		if size, err := unix.IoctlGetWinsize(int(p.out.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
			columns = int(size.Col)
		}
		line := "claudebox: dev shell " + p.what + ", Ctrl-C goes on without it: "
		room := max(columns-1-layout.Width(line), 1)
		fmt.Fprintf(p.out, "\r\x1b[K%s%s", line, layout.Shorten(diag.Visible(p.text), room))
	}
}

// clear takes the line away.
func (p *progress) clear() {
	if !p.terminal {
		return
	}
	p.timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.last.IsZero() {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	p.terminal = false
}
