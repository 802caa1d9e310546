// Package ondemand runs a process of claudebox's own that serves a listener. It starts the process at the first
// connection, because most sessions make none.
package ondemand

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/spawn"
)

// Service describes the process. Its program gets Name as its argv[0], no arguments and no environment, and /dev/null
// as its standard input and output. What it writes to its standard error is the reason if it ends at once.
type Service struct {
	Program string // path of its file
	Name    string // its argv[0]
	// Open opens the files that the process gets as descriptors from [Files] on; nil: none. They are closed here
	// once the process has them.
	Open func() ([]*os.File, error)
	// Serve speaks with the process over line, whose other end is [Line] there, until the process is gone.
	Serve func(line *os.File)
	// Failed is called with the reason, once, if the process could not be started. The connection is closed then, and
	// the next one tries again.
	Failed func(error)
}

// Descriptors of the process.
const (
	Line     = 3 // a socket to its parent; the process ends with its parent
	Listener = 4
	Files    = 5 // the first of those that [Service.Open] opens
)

// Open is called in the started process. It returns the connection to the parent and the listener to serve.
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

// Process is a process that runs, or will at the next connection. If it ends, the next connection starts it again.
type Process struct {
	service  Service
	listener *os.File
	raw      syscall.RawConn
	ended    sync.WaitGroup // goroutines that wait for a connection or for the process

	mu      sync.Mutex
	running *os.Process // nil: it does not run
	stderr  *os.File    // of the process that runs, see [spawn.Messages]
	failed  bool        // it could not be started once, and Failed was called
	closed  bool
}

// Start arranges for a process to be started when somebody connects to listener, which belongs to the Process from
// now on, also if Start fails. The caller closes the Process.
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

// await starts the process when a connection waits at the listener. The process accepts it.
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
			begun := time.Now()
			p.service.Serve(line)
			p.end(process, line, time.Since(begun) < soon)
		})
	})
}

// refuse closes the connection that cannot be served. It is called with the lock held.
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

// start starts the process, and returns our end of the socket to it. It is called with the lock held.
func (p *Process) start() (line *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), p.service.Name), os.NewFile(uintptr(pair[1]), p.service.Name)
	defer theirs.Close()
	defer func() {
		if err != nil {
			ours.Close()
		}
	}()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	stderr, err := spawn.Messages()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			stderr.Close()
		}
	}()
	files := []uintptr{null.Fd(), null.Fd(), stderr.Fd(), theirs.Fd(), Listener: 0} // set below
	if p.service.Open != nil {
		more, err := p.service.Open()
		if err != nil {
			return nil, err
		}
		for _, f := range more {
			defer f.Close()
			files = append(files, f.Fd())
		}
	}
	// The listener's descriptor number is taken by Control: os.File.Fd would make the listener block.
	failed := p.raw.Control(func(listener uintptr) {
		files[Listener] = listener
		var pid int
		attributes := &syscall.ProcAttr{
			Dir: "/", Env: []string{}, Files: files,
			Sys: &syscall.SysProcAttr{Setpgid: true}, // Ctrl-C is for the agent
		}
		if pid, err = syscall.ForkExec(p.service.Program, []string{p.service.Name}, attributes); err == nil {
			p.running, err = os.FindProcess(pid)
		}
	})
	err = cmp.Or(failed, err)
	p.stderr = stderr
	return ours, err
}

// soon is how old a process must become to count as one that could be started.
const soon = time.Second

// end kills and reaps a process, and waits for the next connection. If the process ended early, the connection that it
// was started for may still wait: it is closed, or it would start one process after the other.
func (p *Process) end(process *os.Process, line *os.File, early bool) {
	_ = process.Kill() // nobody here speaks with it any more
	state, _ := process.Wait()
	line.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = nil
	defer p.stderr.Close()
	if p.closed {
		return
	}
	if early {
		p.refuse(fmt.Errorf("%s ended at once: %v: %s", p.service.Name, state, spawn.FirstLine(p.stderr)))
	}
	p.await()
}

// Running returns the process; nil if it does not run.
func (p *Process) Running() *os.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running
}

// Close kills the process, and waits until it is gone.
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
