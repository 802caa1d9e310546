// Package asking answers the questions that an agent asks by claudebox-why.
package asking

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
	"claudebox/internal/linux/aside"
	"claudebox/internal/linux/sockets"
	"claudebox/internal/nix/devshell"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/ask"
	"claudebox/internal/sandbox/launch"
)

// whyPrefix begins the names of the sockets for questions from inside; the id of the session's process follows.
const whyPrefix = "why."

// Of mounts the program claudebox-why and the socket by which it asks, and puts it on PATH, behind all else. instance
// is the instance's folder; look says that nothing is started.
func Of(instance string, path []string, look bool) (made launch.Part, err error) {
	program, err := aside.Program(devshell.Program)
	if err != nil {
		return made, err
	}
	if _, err := os.Stat(program); err != nil {
		made.Note("the agent cannot ask why something is refused: claudebox stands alone, without " + program)
		return made, nil
	}
	made.Mount(
		launch.Mount{Kind: plan.ROBind, Source: program, Destination: ask.Program, Why: plan.Base},
		launch.Mount{Kind: plan.Symlink, Source: ask.Name, Destination: ask.Folder + "/" + ask.Box, Why: plan.Base},
		launch.Mount{
			Kind: plan.ROBind, Source: filepath.Join(instance, whyName(look)),
			Destination: ask.Socket, Why: plan.Base,
		})
	made.Set("PATH", strings.Join(append(slices.Clone(path), ask.Folder), ":"), plan.Base)
	return made, nil
}

// whyName is the name of a session's socket. Where nothing is started, it is the same each time.
func whyName(look bool) string {
	if look {
		return whyPrefix + "PID"
	}
	return fmt.Sprint(whyPrefix, os.Getpid())
}

// Answers are what a session answers by.
type Answers struct {
	Answer   func(question string) string // at most one at a time
	Refusals func() int                   // how many there were so far; asked each second at most
}

// Server answers questions from inside. A nil one answers none.
type Server struct {
	Answers
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

// Serve begins to answer questions. They are bounded in size, rate and time.
func Serve(instance string, by Answers) (*Server, error) {
	l, err := sockets.ListenIn(instance, whyName(false), sockets.OfEnded(whyPrefix))
	if err != nil {
		return nil, diag.Wrap("answer questions from inside, in "+instance, err, "make "+instance+" writable for you")
	}
	s := &Server{Answers: by, listener: l, file: filepath.Join(instance, whyName(false))}
	go accept.Each(l, make(chan struct{}, mostAsking), s.serve) //nolint:errcheck // it was closed
	return s, nil
}

// serve answers one question. The asker has askTime to ask, and again to take the answer: how long that is in the
// making does not count.
func (s *Server) serve(c net.Conn) {
	_ = c.SetDeadline(time.Now().Add(askTime))
	question, err := bufio.NewReader(io.LimitReader(c, ask.Longest)).ReadString('\n')
	if err == nil {
		answer := s.answerTo(strings.TrimSuffix(question, "\n"))
		_ = c.SetDeadline(time.Now().Add(askTime))
		_, _ = io.WriteString(c, answer)
	}
	c.Close()
	time.Sleep(askPause)
}

// answerTo answers a question.
func (s *Server) answerTo(question string) string {
	s.turn.Lock()
	defer s.turn.Unlock()
	if question != ask.Refusals {
		return s.Answer(question)
	}
	if time.Since(s.counted) > countEvery {
		s.count, s.counted = s.Refusals(), time.Now()
	}
	if s.count == 0 {
		return ""
	}
	return fmt.Sprintf("%d refused\n", s.count)
}

// Close ends the answers. Before Linux 6.16 descriptors can wait in the socket, see [sockets.Listen]: whoever closes it
// could wait with them, so nobody waits for that.
func (s *Server) Close() {
	if s != nil {
		go s.listener.Close()
		_ = os.Remove(s.file)
	}
}
