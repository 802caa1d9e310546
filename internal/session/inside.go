package session

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/linux/accept"
	"claudebox/internal/linux/sockets"
	"claudebox/internal/nix/devshell"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/ask"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/ui/why"
)

// whyPrefix begins the names of the sockets for questions from inside; the id of the session's process follows.
const whyPrefix = "why."

// askingOf mounts the program claudebox-why and the socket by which it asks, and puts it on PATH, behind all else.
func askingOf(in inputs) (made part, err error) {
	program, err := ownProgram(devshell.Program)
	if err != nil {
		return made, err
	}
	if _, err := os.Stat(program); err != nil {
		made.note("the agent cannot ask why something is refused: claudebox stands alone, without " + program)
		return made, nil
	}
	made.mount(
		launch.Mount{Kind: plan.ROBind, Source: program, Destination: ask.Program, Why: plan.Base},
		launch.Mount{
			Kind: plan.ROBind, Source: filepath.Join(in.Instance.Dir, whyName(in.why.Look)),
			Destination: ask.Socket, Why: plan.Base,
		})
	made.set("PATH", strings.Join(append(slices.Clone(in.plan.Path), ask.Folder), ":"), plan.Base)
	return made, nil
}

// whyName is the name of a session's socket. Where nothing is started, it is the same each time.
func whyName(look bool) string {
	if look {
		return whyPrefix + "PID"
	}
	return fmt.Sprint(whyPrefix, os.Getpid())
}

// answering answers questions from inside. The zero value answers none.
type answering struct {
	listener net.Listener
	file     string
	turn     sync.Mutex // one answer at a time

	count   int // of refusals, when it was counted
	counted time.Time
}

// Bounds of what a sandbox can ask: so many questions a second, so long for each.
const (
	mostAsking = 4
	askPause   = 20 * time.Millisecond // before the next one is heard in the same place
	askTime    = 2 * time.Second
	countEvery = time.Second // as it asks another process
)

// answerInside begins to answer questions from inside. They are bounded in size, rate and time, and answered by the
// launch alone.
func (r *running) answerInside() error {
	dir, err := os.Open(r.Instance.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	removeLeft(dir, whyPrefix)
	l, err := sockets.Listen(dir, whyName(false))
	if err != nil {
		return diag.Wrap("answer questions from inside, in "+r.Instance.Dir, err, "make that folder writable for you")
	}
	r.replies.listener, r.replies.file = l, filepath.Join(r.Instance.Dir, whyName(false))
	const owners = 0o600
	if err := os.Chmod(sockets.At(dir, whyName(false)), owners); err != nil {
		return err
	}
	home := canonical(r.Facts.Home)
	go accept.Each(l, make(chan struct{}, mostAsking), func(c net.Conn) { //nolint:errcheck // it was closed
		_ = c.SetDeadline(time.Now().Add(askTime))
		question, err := bufio.NewReader(io.LimitReader(c, ask.Longest)).ReadString('\n')
		if err == nil {
			_, _ = io.WriteString(c, r.answerTo(strings.TrimSuffix(question, "\n"), home))
		}
		c.Close()
		time.Sleep(askPause)
	})
	return nil
}

// answerTo answers a question from inside.
func (r *running) answerTo(question, home string) string {
	r.replies.turn.Lock()
	defer r.replies.turn.Unlock()
	if question == ask.Refusals {
		if time.Since(r.replies.counted) > countEvery {
			r.replies.count, r.replies.counted = r.countRefusals(), time.Now()
		}
		return refusalsText(r.replies.count)
	}
	within := why.Within{Launch: r.Launch, Home: home, Session: r.live.ID(), Opened: r.openedHosts()}
	answer, ok := within.Answer(question)
	if !ok {
		return "unknown: that is no host, no path and no program\n"
	}
	return answer.Answered()
}

// countRefusals counts what this session was refused so far.
func (r *running) countRefusals() (n int) {
	report := r.networkReport()
	n = report.More
	for _, one := range report.Refused {
		n += one.Count
	}
	return n + r.broker.refused.count()
}

func refusalsText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d refused\n", n)
}

// close ends the answers.
func (a *answering) close() {
	if a.listener != nil {
		a.listener.Close()
		_ = os.Remove(a.file)
	}
}

// removeLeft removes the sockets with a prefix in a folder that belong to sessions which were killed.
func removeLeft(dir *os.File, prefix string) {
	sockets.RemoveLeft(dir, func(name string, _ time.Duration) bool { return strings.HasPrefix(name, prefix) })
}
