package launch

import (
	"bytes"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
)

// ExitError is the agent's own failure, to be passed on as claudebox's exit
// status. It is never printed.
type ExitError struct {
	Code int // the agent's status; 128+n when signal n ended it
}

// Error is for logs of tests; the command line prints nothing for it.
func (e *ExitError) Error() string { return "agent exited with status " + strconv.Itoa(e.Code) }

// Run starts bwrap by the launch and waits for the agent. It returns nil,
// an [ExitError], or what kept the agent from running. The calling goroutine
// keeps its OS thread: bwrap dies when the thread that started it does
// (PR_SET_PDEATHSIG).
func (l Launch) Run() error {
	runtime.LockOSThread()
	lines, descriptors, err := l.Words()
	if err != nil {
		return err
	}
	fds, err := open(descriptors)
	if err != nil {
		return err
	}
	if err := raiseFileLimit(len(fds)); err != nil {
		fds.close()
		return err
	}
	if err := isolateAbstractSockets(l.Tier); err != nil {
		fds.close()
		return err
	}
	copies, err := copiesOf(descriptors, fds)
	if err != nil {
		fds.close()
		return err
	}
	defer copies.close()
	terminal := saveTerminal()
	child, err := l.start(arguments(lines), fds)
	if err != nil {
		return err
	}
	copies.follow()
	err = child.wait()
	terminal.restoreAfter(err)
	return err
}

// arguments is the content of bwrap's --args file: every word, NUL-terminated.
func arguments(lines []Line) []byte {
	var b bytes.Buffer
	for _, line := range lines {
		for _, w := range line {
			b.WriteString(w.Text)
			b.WriteByte(0)
		}
	}
	return b.Bytes()
}

// sandbox is a running bwrap.
type sandbox struct {
	pid    int
	status int // read end of the pipe that bwrap reports to
	stop   func()
}

// start forks bwrap with an empty environment: its own would be readable
// inside at /proc/1/environ, whatever --clearenv says. fds are closed.
func (l Launch) start(args []byte, fds opened) (*sandbox, error) {
	defer fds.close()
	words, err := memfd("arguments", args)
	if err != nil {
		return nil, err
	}
	defer unix.Close(words)
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return nil, &diag.Error{Op: "start bwrap", Err: err}
	}
	defer unix.Close(pipe[1])
	files := []uintptr{0, 1, 2, uintptr(words), uintptr(pipe[1])}
	for _, fd := range fds {
		files = append(files, uintptr(fd))
	}
	// bwrap's monitor must outlive the terminal's Ctrl-C: it would take the
	// agent with it. Ignored signals stay ignored across execve(2); the shim
	// inside sets them back.
	forward := takeSignals()
	pid, err := syscall.ForkExec(l.Bwrap, l.commandLine(), &syscall.ProcAttr{
		Env: []string{}, Files: files, Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		unix.Close(pipe[0])
		return nil, &diag.Error{Op: "start " + l.Bwrap, Err: err, Remedy: "run `claudebox check`"}
	}
	return &sandbox{pid: pid, status: pipe[0], stop: forward(pid)}, nil
}

// takeSignals ignores what the terminal sends to the whole group and, once
// called with bwrap's pid, forwards what was sent to claudebox alone. What
// the caller had ignored stays so.
func takeSignals() func(pid int) (stop func()) {
	var mine []os.Signal
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			mine = append(mine, s)
		}
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP)
	return func(pid int) func() {
		if len(mine) == 0 {
			return func() {}
		}
		received := make(chan os.Signal, 4)
		signal.Notify(received, mine...)
		go func() {
			for s := range received {
				forward(pid, s.(syscall.Signal))
			}
		}()
		return func() { signal.Stop(received) }
	}
}

// wait blocks until bwrap is gone and tells how it ended.
func (s *sandbox) wait() error {
	defer unix.Close(s.status)
	defer s.stop()
	var state syscall.WaitStatus
	for {
		_, err := syscall.Wait4(s.pid, &state, 0, nil)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EINTR) {
			return &diag.Error{Op: "wait for bwrap", Err: err}
		}
	}
	switch {
	case state.Signaled():
		return &ExitError{Code: 128 + int(state.Signal())}
	case !s.agentRan():
		return setUpFailed()
	case state.ExitStatus() != 0:
		return &ExitError{Code: state.ExitStatus()}
	}
	return nil
}

// agentRan reads bwrap's report. An exit code is in it only when the agent
// was started: bwrap's own failure to set up looks like the agent's status 1
// otherwise.
func (s *sandbox) agentRan() bool {
	buf := make([]byte, 4096)
	n, err := unix.Read(s.status, buf)
	for err == nil && n > 0 {
		if bytes.Contains(buf[:n], []byte(`"exit-code"`)) {
			return true
		}
		n, err = unix.Read(s.status, buf)
	}
	return false
}

func setUpFailed() error {
	return &diag.Error{
		Op: "set up the sandbox", Err: errors.New("bwrap stopped before the agent ran; its message is above"),
		Remedy: "run `claudebox check`",
	}
}

// raiseFileLimit makes room for the descriptors of a launch. Past the soft
// limit bwrap would be left without some of them.
func raiseFileLimit(count int) error {
	const usual = 256
	if count < usual {
		return nil
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return &diag.Error{Op: "read the limit of open files", Err: err}
	}
	if uint64(count+usual) > limit.Max {
		return diag.Errorf("start bwrap", "mount whole folders instead of single files, or raise `ulimit -Hn`",
			"%d files would be open; the limit is %d", count, limit.Max)
	}
	limit.Cur = limit.Max
	// Go hands its children the soft limit it was started with, unless the
	// program sets one itself.
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, (*syscall.Rlimit)(&limit))
}
