package editor

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/confine"
)

// Name is the argv[0] of the process between an agent and an editor.
const Name = "claudebox-editor-filter"

// Descriptors of the process besides the standard ones, which lead to the editor.
const (
	agentOutput = 3 + iota
	agentInput
)

// Protocol is what an agent and an editor speak; empty: they speak none that is known.
type Protocol string

// The protocols that are known.
const (
	ACP    Protocol = "acp"    // the Agent Client Protocol
	Stream Protocol = "stream" // of Claude Code's SDK: --input-format and --output-format stream-json
)

// Between puts a process of its own, without rights, between this process's standard input and output and those that
// it had. lost is called if that process fails before the end. end undoes all, once the agent has ended, and waits
// until everything has arrived.
func Between(spoken Protocol, lost func()) (end func(), err error) {
	var opened []*os.File
	defer func() {
		for _, file := range opened {
			file.Close()
		}
	}()
	var pipes [2][2]*os.File // of the agent's input and output; read end, write end
	for i := range pipes {
		from, to, err := os.Pipe()
		if err != nil {
			return nil, failed(err)
		}
		pipes[i], opened = [2]*os.File{from, to}, append(opened, from, to)
	}
	var kept [2]*os.File // where they led
	for fd := range kept {
		copied, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, agentInput+1)
		if err != nil {
			return nil, failed(err)
		}
		kept[fd] = os.NewFile(uintptr(copied), "the editor")
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args, cmd.Env, cmd.Dir = []string{Name, string(spoken)}, []string{}, "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = kept[0], kept[1], os.Stderr
	cmd.ExtraFiles = []*os.File{pipes[1][0], pipes[0][1]}
	if err := cmd.Start(); err != nil {
		return nil, failed(err)
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		watch(cmd, over, lost)
	}()
	stop := func() {
		close(over)
		for fd, file := range kept {
			_ = unix.Dup3(int(file.Fd()), fd, 0)
			file.Close()
		}
		// It ends by itself when nobody can write to it any more.
		late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		<-ended
	}
	for fd, file := range []*os.File{pipes[0][0], pipes[1][1]} {
		if err := unix.Dup3(int(file.Fd()), fd, 0); err != nil {
			stop()
			return nil, failed(err)
		}
	}
	return stop, nil
}

// watch waits until the process has ended. It calls lost if that failed before it is over.
func watch(cmd *exec.Cmd, over <-chan struct{}, lost func()) {
	err := cmd.Wait()
	select {
	case <-over:
	default:
		if err != nil {
			diag.Note(os.Stderr,
				"what reads the agent's messages to the editor has ended ("+err.Error()+"); the session ends")
			lost()
		}
	}
}

// patience is how long the end waits, at most, for what has not arrived at the editor.
const patience = 5 * time.Second

func failed(err error) error {
	return &diag.Error{Op: "stand between the agent and the editor", Err: err}
}

// Run runs that process if words, the program's arguments with argv[0], ask for it. ran is false for any other words.
func Run(words []string) (status int, ran bool) {
	if len(words) != 2 || words[0] != Name {
		return 0, false
	}
	judge, made := judgeACP, greet
	if Protocol(words[1]) == Stream {
		judge, made = judgeStream, greetStream
	}
	// It stays in the process group, as a terminal is read by that alone, and Ctrl-C is for the agent.
	signal.Ignore(syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP)
	err := confine.Self(confine.Options{Keep: []int{agentOutput, agentInput}, Files: agentInput + 8})
	if err == nil {
		agent := &shared{to: os.NewFile(agentInput, "agent")}
		go func() {
			_ = fromEditor(os.Stdin, agent, made, once(200, func(why string) { diag.Note(os.Stderr, why) }))
			agent.Close() // it learns that the editor has ended
		}()
		err = fromAgent(os.NewFile(agentOutput, "agent"), os.Stdout, agent, judge, once(100, func(why string) {
			diag.Note(os.Stderr, "a message of the agent to the editor was not passed on: "+why)
		}))
	}
	if err != nil {
		diag.Print(os.Stderr, failed(err))
		return 125, true
	}
	return 0, true
}

// shared is the agent's input, which several write to, each a whole line. What it does not take is lost.
type shared struct {
	mu sync.Mutex
	to *os.File // nil: closed
}

func (s *shared) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.to != nil {
		_, _ = s.to.Write(line)
	}
	return len(line), nil
}

func (s *shared) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := s.to
	s.to = nil
	return to.Close()
}

// once calls say for each text once, cut to so many columns, and for the first few alone: an agent chooses them.
func once(columns int, say func(string)) func(string) {
	const most = 10
	said := map[string]bool{}
	return func(why string) {
		why = fmt.Sprintf("%.*s", columns, why)
		if len(said) < most && !said[why] {
			said[why] = true
			say(why)
		}
	}
}
