// Package ondemand runs a process of claudebox's own that serves a listener,
// from the first connection on: most sessions make none.
package ondemand

import (
	"cmp"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Service is what such a process does. It is a program called with one word,
// without an environment. Its standard descriptors are /dev/null.
type Service struct {
	Program string // its file
	Name    string // its word
	// Files opens what the process gets behind [Listener]; nil: nothing. They are
	// closed here when it has them.
	Files func() ([]*os.File, error)
	// Serve speaks with the process, whose other end is [Line], until it is gone.
	Serve func(line *os.File)
	// Failed is told once why it could not be started. The connection is ended
	// then, and the next one tries again.
	Failed func(error)
}

// Descriptors of the process.
const (
	Line     = 3 // a socket to its parent; it ends with that
	Listener = 4
	Files    = 5 // the first of [Service.Files]
)

// Open opens in the process what it speaks with its parent by, and what it
// serves.
func Open() (line net.Conn, listener net.Listener, err error) {
	ours := os.NewFile(Line, "line")
	defer ours.Close()
	if line, err = net.FileConn(ours); err != nil {
		return nil, nil, err
	}
	theirs := os.NewFile(Listener, "listener")
	defer theirs.Close()
	listener, err = net.FileListener(theirs)
	return line, listener, err
}

// Process is one that runs, or will. One that ends is started again by the next
// connection.
type Process struct {
	service  Service
	listener *os.File
	raw      syscall.RawConn
	ended    sync.WaitGroup // of what waits for a connection, or for the process

	mu      sync.Mutex
	running *os.Process // nil: it does not run
	failed  bool        // once, and it was said
	closed  bool
}

// Start starts a process when somebody connects to a listener, which is its own
// from now on. Close it.
func Start(listener *os.File, s Service) (*Process, error) {
	raw, err := listener.SyscallConn()
	if err != nil {
		listener.Close()
		return nil, err
	}
	p := &Process{service: s, listener: listener, raw: raw}
	p.await()
	return p, nil
}

func (p *Process) await() {
	p.ended.Go(func() {
		err := p.raw.Read(func(fd uintptr) bool {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			return err == nil && n > 0
		})
		if err != nil {
			return // closed
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.closed {
			return
		}
		line, err := p.start()
		if err != nil {
			p.refuse(err)
			p.await()
			return
		}
		process := p.running
		p.ended.Go(func() {
			p.service.Serve(line)
			p.over(process, line)
		})
	})
}

// refuse ends the connection that nobody can serve. It is called with the lock
// held.
func (p *Process) refuse(why error) {
	if !p.failed {
		p.failed = true
		p.service.Failed(why)
	}
	_ = p.raw.Control(func(listener uintptr) {
		if conn, _, err := unix.Accept4(int(listener), unix.SOCK_CLOEXEC); err == nil {
			unix.Close(conn)
		}
	})
}

// start starts the process, and gives our end of its line. It is called with the
// lock held.
func (p *Process) start() (line *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	line, theirs := os.NewFile(uintptr(pair[0]), p.service.Name), os.NewFile(uintptr(pair[1]), p.service.Name)
	defer theirs.Close()
	defer func() {
		if err != nil {
			line.Close()
		}
	}()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	files := []uintptr{null.Fd(), null.Fd(), null.Fd(), theirs.Fd(), 0}
	if p.service.Files != nil {
		more, err := p.service.Files()
		if err != nil {
			return nil, err
		}
		for _, f := range more {
			defer f.Close()
			files = append(files, f.Fd())
		}
	}
	// The listener is given by number: os.File.Fd would make it block.
	failed := p.raw.Control(func(listener uintptr) {
		files[Listener] = listener
		var pid int
		attributes := &syscall.ProcAttr{Dir: "/", Env: []string{}, Files: files}
		if pid, err = syscall.ForkExec(p.service.Program, []string{p.service.Name}, attributes); err == nil {
			p.running, err = os.FindProcess(pid)
		}
	})
	return line, cmp.Or(failed, err)
}

// over reaps a process, and waits for the next connection.
func (p *Process) over(process *os.Process, line *os.File) {
	_ = process.Kill() // it has no parent to speak to any more
	_, _ = process.Wait()
	line.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = nil
	if !p.closed {
		p.await()
	}
}

// Running is the process; nil when it does not run.
func (p *Process) Running() *os.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running
}

// Close ends the process, and waits until it is gone.
func (p *Process) Close() {
	p.mu.Lock()
	p.closed = true
	p.listener.Close()
	if p.running != nil {
		_ = p.running.Kill()
	}
	p.mu.Unlock()
	p.ended.Wait()
}
