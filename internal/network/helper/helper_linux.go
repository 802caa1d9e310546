// Package helper is claudebox's side of the process that serves a sandbox's
// network (package serve): it starts it, hands it the network's other end, and
// starts another one when it ends too early.
package helper

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/network/link"
)

// Descriptors that a helper starts with, beside the standard ones: the socket
// by which it speaks with claudebox, and with [Config.Broker] another one, by
// which what answers in the place of hosts does.
const (
	Socket       = 3
	BrokerSocket = 4
)

// Helper is the network of one sandbox and the process that serves it. [Start] makes one.
type Helper struct {
	program string
	ports   Ports
	log     *os.File
	ended   func(error)
	broker  func(*os.File)

	stage, toStage *os.File     // a socket pair, by which the stage hands out what it has made
	stageEnded     func() error // waits for its end; nil: it was not started
	begun          chan error   // has how the first start went, and is closed then

	mu     sync.Mutex
	config Config
	now    process
	attach attach
	ends   []int // of the sandbox's interface, see [link.Made]; kept for another helper
	fds    []int // listeners inside and sockets for its [::1]; likewise
	closed bool
	ending *time.Timer // tells of the network's end, unless the sandbox's is why
}

// process is a helper that runs.
type process struct {
	conn wire
	pid  int
	said *os.File // its standard error, a file in memory
	// reports is closed when the helper has ended.
	reports chan Report
	// configured has one value, when the helper has taken its [Config] or cannot.
	configured chan error
}

// Settings describe how a helper serves a sandbox.
type Settings struct {
	Program string   // the helper's, see package serve
	Config  Config   //
	Ports   Ports    // ports of the host; they belong to the Helper from now on
	Log     *os.File // nil: there is no log
	// Broker is given claudebox's end of [BrokerSocket], for each helper that is
	// started; the end is its own to close.
	Broker func(*os.File)
	Ended  func(error) // told once when the network has ended for good, while the sandbox runs
}

// ErrGone means that the sandbox ended before its network was ready. The sandbox itself
// says why.
var ErrGone = errors.New("the sandbox ended before its network was there")

const op = "connect the sandbox"

// Start starts the helper in the background: [Helper.Attach] returns an error if that
// failed. The sandbox's network need not exist yet.
func Start(s Settings) (*Helper, error) {
	h := &Helper{program: s.Program, config: s.Config, ports: s.Ports, log: s.Log, ended: s.Ended, broker: s.Broker}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, &diag.Error{Op: op, Err: os.NewSyscallError("socketpair", err)}
	}
	h.stage, h.toStage = os.NewFile(uintptr(pair[0]), "stage"), os.NewFile(uintptr(pair[1]), "stage")
	h.begun = make(chan error, 1)
	go func() {
		var err error
		h.now, err = h.begin()
		h.begun <- err
		close(h.begun)
	}()
	return h, nil
}

// begin starts the program and tells it how it is to work. It gets no standard
// stream: who waits for the end of claudebox's output must not wait for it.
func (h *Helper) begin() (p process, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return process{}, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "the helper's end")
	defer theirs.Close()
	ours := os.NewFile(uintptr(pair[0]), "helper")
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		return process{}, err
	}
	p.conn, p.reports, p.configured = wire{conn.(*net.UnixConn)}, make(chan Report, 1), make(chan error, 1)
	if p.said, err = messages(); err == nil {
		p.pid, err = h.execute(p.said, theirs)
	}
	if err != nil {
		p.close()
		return p, err
	}
	// It may be long, and the program takes milliseconds to begin.
	go func(c Config) {
		err := p.conn.send(c)
		if err == nil {
			err = p.conn.sendBytes(c.Roots)
		}
		p.configured <- err
	}(h.config)
	return p, nil
}

// execute starts the program with its sockets.
func (h *Helper) execute(said, socket *os.File) (pid int, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	files := []uintptr{null.Fd(), null.Fd(), said.Fd(), socket.Fd()}
	var ours, theirs *os.File
	if len(h.config.Broker) > 0 {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return 0, os.NewSyscallError("socketpair", err)
		}
		ours, theirs = os.NewFile(uintptr(pair[0]), "broker"), os.NewFile(uintptr(pair[1]), "broker")
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

// mostSaid bounds what is kept of a helper's standard error, in bytes.
const mostSaid = 4096

// messages returns a file in memory that can hold a limited number of bytes.
func messages() (*os.File, error) {
	fd, err := unix.MemfdCreate("claudebox", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "the helper's messages")
	if err := file.Truncate(mostSaid); err != nil {
		file.Close()
		return nil, err
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS,
		unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL); err != nil {
		file.Close()
		return nil, os.NewSyscallError("fcntl", err)
	}
	return file, nil
}

// words returns the first line that a helper wrote to its standard error.
func (p process) words() string {
	text := make([]byte, mostSaid)
	n, _ := p.said.ReadAt(text, 0)
	text, _, _ = bytes.Cut(text[:n], []byte{0})
	text, _, _ = bytes.Cut(text, []byte{'\n'})
	return strconv.QuoteToASCII(string(text))
}

func (p process) close() {
	p.conn.Close()
	if p.said != nil {
		p.said.Close()
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

// Attach takes the network's other end from the stage, and has the helper serve
// it. It returns when the sandbox has its network. It comes after [Helper.Make].
func (h *Helper) Attach() error {
	if err := <-h.begun; err != nil {
		return &diag.Error{
			Op: "start " + h.program, Err: diag.Cause(err),
			Remedy: "install claudebox anew: this program belongs to it",
		}
	}
	made, fds, err := h.made()
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attach = attach{Kind: made.Kind, Out: made.Ports, Inside6: made.Inside6, In: h.ports.inside, Log: h.log != nil}
	h.ends, h.fds = fds[:made.Ends], fds[made.Ends:]
	if err := h.hand(h.now); err != nil {
		return &diag.Error{Op: op, Err: err, Remedy: "run `claudebox check`"}
	}
	go h.watch(h.now)
	return nil
}

// made is what the stage hands out.
func (h *Helper) made() (link.Made, []int, error) {
	defer h.stage.Close()
	text, rights := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4*mostDescriptors))
	n, m, _, _, err := recvmsg(int(h.stage.Fd()), text, rights)
	switch {
	case err != nil:
		return link.Made{}, nil, &diag.Error{Op: op, Err: err}
	case n == 0:
		return link.Made{}, nil, diag.Errorf(op, "", "what makes its network has ended: %v", h.stageEnded())
	}
	go h.stageEnded()
	if why, failed := strings.CutPrefix(string(text[:n]), link.Failed); failed {
		return link.Made{}, nil,
			&diag.Error{Op: op, Err: errors.New(why), Remedy: "run `claudebox check`, or use `--network none`"}
	}
	var made link.Made
	if err := json.Unmarshal(text[:n], &made); err != nil {
		return link.Made{}, nil, &diag.Error{Op: op, Err: err}
	}
	fds, err := descriptorsIn(rights[:m])
	if err != nil || made.Ends < 1 || made.Inside6 < 0 || len(fds) != made.Ends+len(made.Ports)+made.Inside6 {
		return link.Made{}, nil, diag.Errorf(op, "", "bug: %d descriptors came from the stage, %v", len(fds), err)
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	return made, fds, nil
}

func recvmsg(fd int, text, rights []byte) (n, m, flags int, from unix.Sockaddr, err error) {
	for {
		n, m, flags, from, err = unix.Recvmsg(fd, text, rights, unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, unix.EINTR) {
			return n, m, flags, from, err
		}
	}
}

// readyTime bounds the wait for a helper to be ready, which takes a few milliseconds.
const readyTime = 10 * time.Second

// hand gives a helper the network and waits until it serves it.
func (h *Helper) hand(p process) error {
	_ = p.conn.SetDeadline(time.Now().Add(readyTime))
	defer p.conn.SetDeadline(time.Time{})
	fds := slices.Concat(h.ends[:1], h.fds, h.ports.descriptors())
	if h.log != nil {
		fds = append(fds, int(h.log.Fd()))
	}
	err := <-p.configured
	if err == nil {
		err = p.conn.send(h.attach)
	}
	if err == nil {
		err = p.conn.sendDescriptors(fds)
	}
	var a answer
	if err == nil {
		err = p.conn.receive(&a)
	}
	switch {
	case err != nil:
		return fmt.Errorf("the network helper does not answer: %w: %s", err, p.words())
	case a.Error != "":
		return fmt.Errorf("the network helper: %s", a.Error)
	}
	return nil
}

// watch hears a helper until its end, and starts another: the interface lives
// as long as its descriptor here does.
func (h *Helper) watch(p process) {
	for {
		var r Report
		if p.conn.receive(&r) != nil {
			break
		}
		p.reports <- r
	}
	close(p.reports)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	why := p.words()
	p.close()
	var status syscall.WaitStatus
	_, _ = syscall.Wait4(p.pid, &status, 0, nil)
	h.now.pid = 0
	next, err := h.another()
	if err != nil {
		h.closed = true
		h.letGo()
		err = fmt.Errorf("the network helper has ended (%s), and cannot be started again: %w", why, err)
		if status.ExitStatus() != 0 {
			h.ended(err)
			return
		}
		// Its interface went away, as it does when the sandbox ends: [Helper.Close]
		// is on its way then.
		h.ending = time.AfterFunc(time.Second, func() { h.ended(err) })
		return
	}
	h.now = next
	go h.watch(next)
}

// another starts another helper for the existing network.
func (h *Helper) another() (process, error) {
	if h.config.Generation++; h.config.Generation >= link.Ends {
		return process{}, errors.New("it has ended too often")
	}
	if len(h.ends) > 1 {
		unix.Close(h.ends[0])
		h.ends = h.ends[1:]
	}
	p, err := h.begin()
	if err != nil {
		return process{}, err
	}
	if err := h.hand(p); err != nil {
		p.close()
		return process{}, err
	}
	return p, nil
}

// letGo closes what the sandbox's network is held by. To close an interface
// for good takes the kernel milliseconds, so the helper has to be the last.
func (h *Helper) letGo() {
	for _, fd := range slices.Concat(h.ends, h.fds) {
		unix.Close(fd)
	}
	h.ends, h.fds = nil, nil
	h.ports.Close()
	if h.log != nil {
		h.log.Close()
	}
}

// Summary is what the helpers of a session did.
type Summary struct {
	Report
	Restarted int  `json:"restarted,omitempty"` // how often a helper ended and another was started
	Lost      bool `json:"lost,omitempty"`      // the last helper was asked for its Report, and none came
}

// Close ends the network, and tells what happened. It does not wait for the
// helper's end. It may be called at any stage.
func (h *Helper) Close() Summary {
	<-h.begun
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stage.Close()
	h.toStage.Close()
	s := Summary{Restarted: h.config.Generation}
	if h.ending != nil {
		h.ending.Stop()
	}
	if h.closed { // the last helper's end came first, with what it knew
		s.Lost = true
		return s
	}
	h.closed = true
	if len(h.ends) > 0 {
		var came bool
		s.Report, came = h.now.report()
		s.Lost = !came
	}
	h.letGo()
	h.now.close()
	if h.now.reap(syscall.WNOHANG) {
		h.now.pid = 0
	}
	return s
}

// Reap waits for the end of a helper, and of what made its network, after
// [Helper.Close], so that none is left to a process 1 that may not reap.
func (h *Helper) Reap() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stageEnded != nil {
		_ = h.stageEnded()
	}
	if !h.closed || h.now.pid <= 0 {
		return
	}
	_ = syscall.Kill(h.now.pid, syscall.SIGKILL) // it has said what it had to say
	h.now.reap(0)
	h.now.pid = 0
}

// report asks a helper for a summary so far. It returns false if no valid report arrives in
// time.
func (p process) report() (r Report, came bool) {
	if p.conn.send(request{}) != nil {
		return Report{}, false
	}
	select {
	case r, came = <-p.reports:
		return r, came
	case <-time.After(reportTime):
		return Report{}, false
	}
}

// reportTime bounds the wait for a report, which takes less than a millisecond.
const reportTime = time.Second

// request asks for a [Report].
type request struct{}
