package launch

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/spawn"
)

// ExitError is the agent's own failure, to be passed on as claudebox's exit
// status. It is never printed.
type ExitError struct {
	Code int // the agent's status; 128+n when signal n ended it
}

// Error is for logs of tests; the command line prints nothing for it.
func (e *ExitError) Error() string { return "agent exited with status " + strconv.Itoa(e.Code) }

// signaled reports whether the status is that of an end by a signal. bwrap
// reports it in this form only, so an agent that exits with such a status by
// itself is not told apart.
func (e *ExitError) signaled() bool {
	const signals = 64 // signal(7): up to SIGRTMAX
	return e.Code > 128 && e.Code <= 128+signals
}

// Run starts bwrap by the launch and waits for the agent. It returns nil,
// an [ExitError], or what kept the agent from running. The caller has looked at
// bwrap by [CheckBwrap]. The calling goroutine
// keeps its OS thread: bwrap dies when the thread that started it does
// (PR_SET_PDEATHSIG).
func (r Runner) Run() error {
	if r.Post == nil {
		r.Post = &Post{}
	}
	lines, descriptors, err := r.Words()
	if err != nil {
		return err
	}
	fds, err := open(descriptors)
	if err != nil {
		return err
	}
	copies, err := copiesOf(descriptors, fds)
	if err != nil {
		fds.close()
		return err
	}
	defer copies.close()
	terminal := saveTerminal()
	r.Post.pausing(terminal.lend)
	if !r.gated() {
		err := done(r.Before)
		if err == nil {
			err = done(r.Laid)
		}
		if err != nil {
			fds.close()
			return err
		}
	}
	child, err := r.start(arguments(lines), fds)
	if err != nil {
		return err
	}
	copies.follow()
	r.Post.caughtAll.Wait()
	if err := r.connect(child); err != nil {
		return err
	}
	if r.Started != nil {
		r.Started(child.pid)
	}
	err = r.explain(child.wait(r.OwnPIDs))
	terminal.release()
	terminal.restoreAfter(err, r.Owns)
	return err
}

// arguments is the content of bwrap's --args file: every word, NUL-terminated.
func arguments(lines []Line) []byte {
	var b bytes.Buffer
	b.Grow(8 << 10) // as a rule enough
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
	status *os.File // read end of the pipe that bwrap reports to
	inside *os.File // the processes in it, see [sandbox.empty]; nil: not known
	gate   gate
	tree   tree
	post   *Post
}

// start forks bwrap with an empty environment: its own would be readable
// inside at /proc/1/environ, whatever --clearenv says. fds are closed.
func (r Runner) start(args []byte, fds opened) (*sandbox, error) {
	defer fds.close()
	runtime.LockOSThread()
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
	files := slices.Concat([]int{0, 1, 2, words, int(report.Fd())}, fds)
	gate, err := r.newGate()
	if err != nil {
		status.Close()
		return nil, err
	}
	defer gate.closeInside()
	files = append(files, gate.files()...)
	tree, err := r.newTree()
	if err != nil {
		status.Close()
		return nil, err
	}
	defer tree.closeInside()
	if err := raiseFileLimit(len(files)); err != nil {
		status.Close()
		return nil, err
	}
	if !r.OwnPIDs {
		r.Post.caughtAll.Wait()
	}
	pid, err := r.fork(tree, files)
	if err != nil {
		status.Close()
		if cause := CheckUserNamespaces(); cause != nil {
			return nil, cause
		}
		return nil, &diag.Error{Op: "start " + r.Bwrap, Err: err, Remedy: "run `claudebox check`"}
	}
	r.Post.forwardTo(pid, r.OwnPIDs)
	return &sandbox{pid: pid, status: status, gate: gate, tree: tree, post: r.Post}, nil
}

// fork starts bwrap, by itself in a pid namespace where that is possible, for
// two things that the kernel then guarantees (pid_namespaces(7)). When this
// thread dies, so does bwrap, and with it everything inside: --die-with-parent
// alone takes hold only when the sandbox is set up, and whoever killed
// claudebox before left a sandbox running. And no signal of the terminal ends
// bwrap and the agent with it before the agent has handled it: bwrap's monitor is
// in the terminal's process group as the agent is, and without a namespace of its
// own it can only be spared what the agent is spared, too.
//
// Where it is not possible, the signals that would end bwrap are blocked in it,
// and set free again for the agent by the shim.
func (r Runner) fork(t tree, files []int) (pid int, err error) {
	begin := func() (int, error) {
		return spawn.Start(t.mounting(spawn.Program{
			Path: r.Bwrap, Args: r.commandLine(), Files: files,
			PIDs: r.OwnPIDs, Network: r.Network != nil,
		}))
	}
	if r.OwnPIDs {
		return begin()
	}
	return r.Post.blocked(begin)
}

// CanOwnPIDs reports whether bwrap can be given a pid namespace. It looks its
// child, which has number 2 there, up in the /proc of this process (bubblewrap
// 0.12, namespace_ids_read), and stops when there is no such number: in most
// containers, and where /proc is mounted with hidepid=. What it finds it only
// reports.
func CanOwnPIDs() bool {
	fd, err := unix.Open("/proc/2/ns", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// wait blocks until the agent has ended and no process is left in the sandbox:
// then what protects the project can be taken away, and what was left there be
// judged. Where other processes are left, or may be, it waits until bwrap is
// gone and they with it, which takes the kernel a millisecond more.
func (s *sandbox) wait(ownPIDs bool) error {
	defer s.close()
	code, ran := s.report()
	if ran && ownPIDs && s.empty() {
		s.post.stop()
		s.post.unreaped = s.pid
		return exit(code)
	}
	state, err := s.reap()
	last := s.post.lastSignal()
	switch {
	case err != nil:
		return &diag.Error{Op: "wait for bwrap", Err: err}
	case s.post.fault != nil:
		return &diag.Error{Op: "stop the sandbox", Err: s.post.fault, Remedy: "start it again; it was ended"}
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

// reap waits for bwrap in two steps: its process id stays its own until
// nothing is sent to it any more.
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

// report reads what bwrap says of the agent (bwrap(1), --json-status-fd). An
// exit code comes only when the agent ran: bwrap's own failure looks like the
// agent's status 1 otherwise.
func (s *sandbox) report() (code int, ran bool) {
	var text []byte
	piece := make([]byte, 512)
	for {
		n, err := s.status.Read(piece)
		text = append(text, piece[:n]...)
		if s.inside == nil {
			s.inside = openInside(s.pid)
		}
		if code, ran := exitCode(text); ran || err != nil {
			return code, ran
		}
	}
}

// exitCode finds the whole number behind its name in bwrap's report.
func exitCode(report []byte) (code int, found bool) {
	_, rest, found := bytes.Cut(report, []byte(`"exit-code": `))
	digits, _, ended := bytes.Cut(rest, []byte(" "))
	code, err := strconv.Atoi(string(digits))
	return code, found && ended && err == nil
}

// raiseFileLimit makes room for the descriptors of a launch: past the soft limit
// bwrap would be left without some of them.
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
