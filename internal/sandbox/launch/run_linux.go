package launch

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/letgo"
	"claudebox/internal/linux/spawn"
)

// ExitError says that the agent ended with a status other than 0, which becomes
// claudebox's exit status. It is never printed.
type ExitError struct {
	Code int // the agent's status; 128+n when signal n ended it
}

// Error is for logs of tests; the command line prints nothing for it.
func (e *ExitError) Error() string { return "agent exited with status " + strconv.Itoa(e.Code) }

// signaled reports whether the status is one of an end by a signal, 128+n. bwrap reports
// it in this form only, so an agent that exits with such a status by itself looks the
// same.
func (e *ExitError) signaled() bool {
	const signals = 64 // signal(7): up to SIGRTMAX
	return e.Code > 128 && e.Code <= 128+signals
}

// Run starts bwrap and waits for the agent. It returns nil if the agent ended with
// status 0, an [ExitError] if it ended with another, or the reason why it did not run.
// The caller must have checked bwrap by [CheckBwrap]. The calling goroutine stays locked
// to its OS thread after Run: bwrap is killed when the thread that started it ends
// (PR_SET_PDEATHSIG).
func (r Runner) Run() error {
	lines, descriptors, err := r.Words()
	if err != nil {
		return err
	}
	if r.Background {
		lines = append(lines, Line{{Text: "--new-session"}})
	}
	fds, err := r.open(descriptors)
	if err != nil {
		return err
	}
	terminal, restoreFlags := saveTerminal(), saveFlags()
	r.Signals.before = terminal.lend
	if err := r.Signals.Interrupted(); err != nil {
		fds.close()
		return err
	}
	runtime.LockOSThread()
	child, err := r.start([]int{0, 1, 2}, arguments(lines), fds)
	if err != nil {
		return err
	}
	defer follow(descriptors).Close()
	r.Signals.caughtAll.Wait()
	if err := r.connect(child); err != nil {
		return err
	}
	overlays := r.holdOverlays(child.pid)
	r.Started(child.pid)
	err = child.wait()
	ran := !errors.Is(err, errSetUp)
	err = r.explain(child, err)
	for _, of := range overlays {
		letgo.Close(of)
	}
	r.Ended(ran)
	restoreFlags()
	terminal.release()
	terminal.restoreAfter(err, r.Agent.OwnsTerminal, r.Piped)
	return err
}

// arguments returns the content for bwrap's --args: every word, NUL-terminated.
func arguments(lines []Line) []byte {
	var b bytes.Buffer
	b.Grow(8 << 10) // usually enough
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
	began  time.Time
	status *os.File // read end of the pipe that bwrap reports to
	gate   gate
	tree   tree
	post   *Signals
}

// start starts bwrap. Its environment is empty, because it can be read inside as
// /proc/1/environ, even with --clearenv. streams are its standard descriptors, args the
// content of --args. start closes fds, also on an error.
//
// bwrap is the first process of a pid namespace. The kernel then guarantees two things
// (pid_namespaces(7)). First, if this thread dies, bwrap dies, and with it everything
// inside. --die-with-parent alone takes effect only when the sandbox is set up: if
// claudebox is killed before, a sandbox is left running. Second, a signal of the terminal
// cannot end bwrap, and so the agent, before the agent has handled it: bwrap's monitor is
// in the terminal's process group like the agent.
func (r Runner) start(streams []int, args []byte, fds opened) (child *sandbox, err error) {
	defer fds.close()
	if err := isolateAbstractSockets(r.Tier); err != nil {
		return nil, err
	}
	words, err := memfd("arguments", args)
	if err != nil {
		return nil, err
	}
	defer unix.Close(words)
	status, report, err := os.Pipe()
	if err != nil {
		return nil, &diag.Error{Op: "start bwrap", Err: err}
	}
	defer report.Close()
	defer func() {
		if err != nil {
			status.Close()
		}
	}()
	files := slices.Concat(streams, []int{words, int(report.Fd())}, fds)
	gate, err := r.newGate()
	if err != nil {
		return nil, err
	}
	defer gate.closeInside()
	for _, f := range gate.theirs {
		files = append(files, int(f.Fd()))
	}
	tree, err := r.newTree()
	if err != nil {
		return nil, err
	}
	defer tree.closeInside()
	if err := raiseFileLimit(len(files)); err != nil {
		return nil, err
	}
	pid, err := spawn.Start(tree.mounting(spawn.Program{
		Path: r.Bwrap, Args: r.commandLine(), Files: files, PIDs: true, Network: r.Network != nil,
	}))
	if err != nil {
		if cause := CheckUserNamespaces(); cause != nil {
			return nil, cause
		}
		return nil, &diag.Error{Op: "start " + r.Bwrap, Err: err, Remedy: "run `claudebox check`"}
	}
	r.Signals.forwardTo(pid)
	return &sandbox{pid: pid, began: time.Now(), status: status, gate: gate, tree: tree, post: r.Signals}, nil
}

// wait waits until bwrap has ended, and with it every process in the sandbox. After that
// the protections of the project can be removed, and the files that the agent left be
// checked. The error is as in [Runner.Run].
func (s *sandbox) wait() error {
	defer s.status.Close()
	code, ran := s.report()
	state, err := s.reap()
	last := s.post.lastSignal()
	switch {
	case err != nil:
		return &diag.Error{Op: "wait for bwrap", Err: err}
	case s.post.fault != nil:
		return &diag.Error{Op: "stop the sandbox", Err: s.post.fault, Remedy: "start again"}
	case ran:
		return exit(code)
	case last != 0:
		return exit(128 + int(last))
	case state.Signaled():
		return exit(128 + int(state.Signal()))
	}
	return errSetUp
}

func exit(code int) error {
	if code == 0 {
		return nil
	}
	return &ExitError{Code: code}
}

// reap waits for bwrap in two steps, so that its process id is not reused before the
// last signal was sent to it.
func (s *sandbox) reap() (syscall.WaitStatus, error) {
	var state syscall.WaitStatus
	err := uninterrupted(func() error { return unix.Waitid(unix.P_PID, s.pid, nil, unix.WEXITED|unix.WNOWAIT, nil) })
	s.post.stop()
	if err != nil {
		return state, err
	}
	err = uninterrupted(func() error {
		_, err := syscall.Wait4(s.pid, &state, 0, nil)
		return err
	})
	return state, err
}

func uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// report reads the agent's exit status from bwrap's report (bwrap(1),
// --json-status-fd). ran is false if there is none: the agent did not run. From bwrap's
// own exit status its failures could not be told from an agent that ends with 1.
func (s *sandbox) report() (code int, ran bool) {
	lines := json.NewDecoder(s.status)
	for {
		var said struct {
			ExitCode *int `json:"exit-code"`
		}
		err := lines.Decode(&said)
		switch {
		case err != nil:
			return 0, false
		case said.ExitCode != nil:
			return *said.ExitCode, true
		}
	}
}

// raiseFileLimit raises the soft limit on open files if a launch has many descriptors
// (count): bwrap would not get those above the limit.
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
	// Go starts children with the soft limit that it was started with itself, unless the
	// program has called syscall.Setrlimit.
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, (*syscall.Rlimit)(&limit))
}
