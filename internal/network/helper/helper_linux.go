// Package helper is claudebox's side of the process that serves a sandbox's
// network, which is package serve. It starts the process, gives it the other end of the
// network, and starts another process if the first one ends too early.
package helper

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/spawn"
	"claudebox/internal/network/link"
)

// Descriptors that a helper starts with, beside the standard ones: the socket to claudebox, the [Config] and, with
// [Config.Broker], the socket from its answerer to claudebox.
const (
	Socket       = 3
	ConfigFile   = 4
	BrokerSocket = 5
)

// Helper is the network of one sandbox and the process that serves it. [Start] makes one.
type Helper struct {
	program string
	ports   Ports
	log     *os.File
	ended   func(error)
	broker  func(*os.File)

	stage      link.Conn
	toStage    *os.File // the stage's end of it
	stagePID   int
	stageEnded func() error // waits for the stage's end; nil: the stage was not started
	started    chan error   // has the result of the first start, and is closed then

	mu        sync.Mutex
	config    Config
	running   process
	network   link.Network
	inside    []int // its descriptors; kept for another process
	closed    bool
	restarted int         // how often another process was started
	ending    *time.Timer // calls ended, unless Close is called before; nil: it is not to
}

// process is a helper that runs.
type process struct {
	conn    link.Conn
	pid     int
	stderr  *os.File   // see [spawn.Messages]
	replies chan reply // closed when the helper has ended
}

// Settings describe how a helper serves a sandbox.
type Settings struct {
	Program string // the file of the helper's program, see package serve
	Config  Config
	Ports   Ports    // ports of the host; they belong to the Helper from now on
	Log     *os.File // nil: there is no log
	// Broker is called with claudebox's end of [BrokerSocket] for each process that is started, and must close it.
	Broker func(*os.File)
	// Ended is called once if the network has ended for good while the sandbox still runs.
	Ended func(error)
}

// ErrGone means that the sandbox ended before its network was ready. The sandbox itself prints the reason.
var ErrGone = errors.New("the sandbox ended before its network was there")

const op = "connect the sandbox"

// Start starts the helper in the background: [Helper.Attach] returns an error if that
// failed. The sandbox's network need not exist yet.
func Start(s Settings) (*Helper, error) {
	h := &Helper{program: s.Program, config: s.Config, ports: s.Ports, log: s.Log, ended: s.Ended, broker: s.Broker}
	ours, theirs, err := link.Pair()
	if err == nil {
		h.toStage = theirs
		h.stage, err = link.Open(ours)
	}
	if err != nil {
		return nil, &diag.Error{Op: op, Err: err}
	}
	h.started = make(chan error, 1)
	go func() {
		var err error
		h.running, err = h.startProcess()
		h.started <- err
		close(h.started)
	}()
	return h, nil
}

// startProcess starts a process. It gets none of claudebox's standard streams, so that nobody who waits for the end of
// claudebox's output waits for the process.
func (h *Helper) startProcess() (p process, err error) {
	ours, theirs, err := link.Pair()
	if err != nil {
		return process{}, err
	}
	defer theirs.Close()
	if p.conn, err = link.Open(ours); err != nil {
		return process{}, err
	}
	p.replies = make(chan reply, 1)
	if p.stderr, err = spawn.Messages(); err == nil {
		p.pid, err = h.execute(p.stderr, theirs)
	}
	if err != nil {
		p.close()
	}
	return p, err
}

// execute runs the program with its descriptors.
func (h *Helper) execute(stderr, socket *os.File) (pid int, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	config, err := h.config.file()
	if err != nil {
		return 0, err
	}
	defer config.Close()
	files := []uintptr{null.Fd(), null.Fd(), stderr.Fd(), socket.Fd(), config.Fd()}
	var ours, theirs *os.File
	if len(h.config.Broker) > 0 {
		if ours, theirs, err = link.Pair(); err != nil {
			return 0, err
		}
		defer theirs.Close()
		files = append(files, theirs.Fd())
	}
	pid, err = syscall.ForkExec(h.program, []string{"claudebox-network"}, &syscall.ProcAttr{
		Dir: "/", Env: []string{}, Files: files, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	switch {
	case err != nil && ours != nil:
		ours.Close()
		fallthrough
	case err != nil:
		return 0, &os.PathError{Op: "execve", Path: h.program, Err: err}
	case ours != nil:
		h.broker(ours)
	}
	return pid, nil
}

func (p process) close() {
	p.conn.Close()
	if p.stderr != nil {
		p.stderr.Close()
	}
}

// reap waits for the helper if it has ended, so that it does not stay a zombie.
// It reports whether the process id is free.
func (p process) reap(options int) bool {
	if p.pid <= 0 {
		return true
	}
	pid, err := syscall.Wait4(p.pid, nil, options, nil)
	return pid == p.pid || errors.Is(err, syscall.ECHILD)
}

// Attach receives the network's other end from the stage and gives it to the helper. It returns when the helper
// serves it. It must be called after [Helper.Make].
func (h *Helper) Attach() error {
	if err := <-h.started; err != nil {
		return &diag.Error{
			Op: "start " + h.program, Err: diag.Cause(err),
			Remedy: diag.Reinstall,
		}
	}
	n, fds, err := h.receiveNetwork()
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.network, h.inside = n, fds
	if err := h.handOver(h.running); err != nil {
		return &diag.Error{Op: op, Err: err, Remedy: "run `claudebox check`"}
	}
	go h.watch(h.running)
	return nil
}

// receiveNetwork receives what the stage sends.
func (h *Helper) receiveNetwork() (n link.Network, fds []int, err error) {
	defer h.stage.Close()
	_ = h.stage.SetDeadline(time.Now().Add(readyTime))
	fds, err = h.stage.Receive(&n)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		_ = syscall.Kill(h.stagePID, syscall.SIGKILL)
		err = diag.Errorf(op, "run `claudebox check`", "what makes its network has said nothing for %s", readyTime)
		return n, fds, err
	case errors.Is(err, io.EOF):
		return n, fds, diag.Errorf(op, "", "what makes its network has ended: %v", h.stageEnded())
	case err != nil:
		return n, fds, &diag.Error{Op: op, Err: err}
	}
	go h.stageEnded()
	switch {
	case n.Error != "":
		err = &diag.Error{Op: op, Err: errors.New(n.Error), Remedy: "run `claudebox check`, or use `--network none`"}
	case len(fds) == 0 || len(fds) != len(n.Ends):
		err = diag.Errorf(op, "", "bug: %d descriptors came from the stage", len(fds))
	}
	return n, fds, err
}

// readyTime bounds the wait for a helper to be ready, which takes a few milliseconds.
const readyTime = 10 * time.Second

// handOver gives a process the network and waits until the process serves it.
func (h *Helper) handOver(p process) error {
	_ = p.conn.SetDeadline(time.Now().Add(readyTime))
	defer p.conn.SetDeadline(time.Time{})
	n, fds := h.network, slices.Clone(h.inside)
	for i, l := range h.ports.listeners {
		fds = n.Add(fds, link.Outside, h.ports.inside[i], int(l.Fd()))
	}
	if h.log != nil {
		fds = n.Add(fds, link.Log, 0, int(h.log.Fd()))
	}
	err := p.conn.Send(n, fds...)
	var a reply
	if err == nil {
		_, err = p.conn.Receive(&a)
	}
	switch {
	case err != nil:
		return fmt.Errorf("the network helper does not answer: %w: %s", err, spawn.FirstLine(p.stderr))
	case a.Error != "":
		return fmt.Errorf("the network helper: %s", a.Error)
	}
	return nil
}

// watch receives a process's reports until the process ends, and then starts another one unless h was closed. The
// interface stays as long as this process has its descriptor.
func (h *Helper) watch(p process) {
	for {
		var r reply
		if _, err := p.conn.Receive(&r); err != nil {
			break
		}
		select {
		case p.replies <- r:
		default: // neither it nor the one before was asked for
		}
	}
	close(p.replies)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	why := spawn.FirstLine(p.stderr)
	p.close()
	var status syscall.WaitStatus
	_, _ = syscall.Wait4(p.pid, &status, 0, nil)
	h.running.pid = 0
	if status.Signaled() { // it said nothing
		why = status.Signal().String()
	}
	next, err := h.restart()
	if err != nil {
		h.closed = true
		h.release()
		err = fmt.Errorf("the network helper has ended (%s), and cannot be started again: %w", why, err)
		if status.ExitStatus() != 0 {
			h.ended(err)
			return
		}
		// Status 0 means that the interface was gone. Then the sandbox has probably ended, and [Helper.Close]
		// will be called soon.
		h.ending = time.AfterFunc(time.Second, func() { h.endUnlessClosed(err) })
		return
	}
	h.running = next
	go h.watch(next)
}

// endUnlessClosed calls ended, but not once [Helper.Close] has been called.
func (h *Helper) endUnlessClosed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ending != nil {
		h.ended(err)
	}
}

// mostHelpers is how many processes are started for a sandbox, one after the other.
const mostHelpers = 8

// restart starts another process for the existing network.
func (h *Helper) restart() (process, error) {
	if h.restarted+1 >= mostHelpers {
		return process{}, errors.New("it has ended too often")
	}
	p, err := h.startProcess()
	if err != nil {
		return process{}, err
	}
	if err := h.handOver(p); err != nil {
		_ = syscall.Kill(p.pid, syscall.SIGKILL) // it may be stopped
		p.reap(0)
		p.close()
		return process{}, err
	}
	h.restarted++
	return p, nil
}

// release closes claudebox's descriptors of the sandbox's network. It does so before the helper ends: the last
// one to close an interface waits milliseconds for the kernel.
func (h *Helper) release() {
	for _, fd := range h.inside {
		unix.Close(fd)
	}
	h.inside = nil
	h.ports.Close()
	if h.log != nil {
		h.log.Close()
	}
}

// Summary is what the helpers of a session report.
type Summary struct {
	Report
	Restarted int  `json:"restarted,omitempty"` // how often a helper ended and another was started
	Lost      bool `json:"lost,omitempty"`      // the last helper was asked for its Report, and none came
}

// Close ends the network and returns a summary. It does not wait for the end of the helper, see [Helper.Reap]. It may
// be called at any time.
func (h *Helper) Close() Summary {
	<-h.started
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stage.Close()
	h.toStage.Close()
	s := Summary{Restarted: h.restarted}
	if h.ending != nil {
		h.ending.Stop()
		h.ending = nil
	}
	if h.closed { // the last helper has ended already, without a report
		s.Lost = true
		return s
	}
	h.closed = true
	if len(h.inside) > 0 {
		var came bool
		var last reply
		last, came = h.running.ask(Request{Last: true})
		s.Report, s.Lost = last.Report, !came
	}
	h.release()
	h.running.close()
	if h.running.reap(syscall.WNOHANG) {
		h.running.pid = 0
	}
	return s
}

// Reap ends the helper after [Helper.Close], and waits for its end and the stage's. Else they could stay zombies,
// as the process 1 of a container may not wait for them.
func (h *Helper) Reap() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stageEnded != nil {
		_ = h.stageEnded()
	}
	if !h.closed || h.running.pid <= 0 {
		return
	}
	_ = syscall.Kill(h.running.pid, syscall.SIGKILL) // its report has been received
	h.running.reap(0)
	h.running.pid = 0
}

// Report asks for a report up to now. It returns false if none comes, as when the network has ended.
func (h *Helper) Report() (Report, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.inside) == 0 {
		return Report{}, false
	}
	r, came := h.running.ask(Request{})
	return r.Report, came
}

// Open lets the sandbox reach more from now on, until the session ends.
func (h *Helper) Open(o Opening) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for end := time.Now().Add(startTime); !h.closed && len(h.inside) == 0 && time.Now().Before(end); {
		h.mu.Unlock() // the sandbox is about to start
		time.Sleep(startTime / 100)
		h.mu.Lock()
	}
	config, err := h.config.With(o)
	switch {
	case err != nil:
		return err
	case h.closed || len(h.inside) == 0:
		return errors.New("its network is not there")
	}
	r, came := h.running.ask(Request{Open: &o})
	switch {
	case !came:
		return errors.New("the network helper does not answer")
	case r.Error != "":
		return errors.New(r.Error)
	}
	h.config = config // for the next process
	return nil
}

// startTime is how long a sandbox's network may take to be there, once the session is known outside.
const startTime = 3 * time.Second

// ask asks a helper. It returns false if no valid reply arrives in time.
func (p process) ask(q Request) (r reply, came bool) {
	select {
	case <-p.replies: // that came too late
	default:
	}
	if p.conn.Send(q) != nil {
		return reply{}, false
	}
	select {
	case r, came = <-p.replies:
		return r, came
	case <-time.After(replyTime):
		return reply{}, false
	}
}

// replyTime bounds the wait for a reply, which takes less than a millisecond.
const replyTime = time.Second
