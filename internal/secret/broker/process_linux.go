package broker

import (
	"net"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/confine"
)

// Name is what the process of a broker is called with: it is this program once
// more, see [Run].
const Name = "claudebox-broker"

// Hello is what a broker's process is told first.
type Hello struct {
	Config   Config  `json:"config"`
	Password string  `json:"password"` // of the proxy
	Proxies  Proxies `json:"proxies"`  // that lead out
}

// Process is a broker with a proxy on loopback, in a confined process of its
// own, for a sandbox that shares the host's network. It begins with the first
// connection: most commands make none.
type Process struct {
	keeper   Keeper
	listener *os.File
	ended    sync.WaitGroup // of what waits for a connection, or for the process

	mu      sync.Mutex
	hello   Hello
	line    *Line       // nil: it does not run
	running *os.Process // likewise
	closed  bool
}

// Listen takes a port of loopback for [Start].
func Listen() (listener *os.File, port int, err error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, 0, err
	}
	defer l.Close()
	port = l.Addr().(*net.TCPAddr).Port
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		return nil, 0, err
	}
	var fd int
	if failed := raw.Control(func(open uintptr) {
		fd,
			err = unix.FcntlInt(open, unix.F_DUPFD_CLOEXEC, 0)
	}); failed != nil {
		err = failed
	}
	if err != nil {
		return nil, 0, err
	}
	return os.NewFile(uintptr(fd), "broker's listener"), port, nil // not blocking, as Go made it
}

// Start starts a broker at a listener when somebody connects. One that ends is
// started again by the next connection, with what its sandbox knows already.
// Close it.
func Start(listener *os.File, hello Hello, keeper Keeper) (*Process, error) {
	p := &Process{keeper: keeper, listener: listener, hello: hello}
	raw, err := listener.SyscallConn()
	if err != nil {
		listener.Close()
		return nil, err
	}
	p.await(raw)
	return p, nil
}

// await starts the broker when somebody connects.
func (p *Process) await(raw syscall.RawConn) {
	p.ended.Go(func() {
		err := raw.Read(func(fd uintptr) bool {
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
		if err := p.start(raw); err != nil {
			p.keeper.Report(Refusal{Host: "any host", Why: "the broker cannot be started: " + err.Error()})
		}
	})
}

// start is called with the lock held.
func (p *Process) start(raw syscall.RawConn) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	theirs := os.NewFile(uintptr(pair[1]), "broker")
	defer theirs.Close()
	if err := unix.SetNonblock(pair[0], true); err != nil {
		unix.Close(pair[0])
		return err
	}
	ours := os.NewFile(uintptr(pair[0]), "broker")
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		ours.Close()
		return err
	}
	defer null.Close()
	process, err := p.fork(raw, null, theirs)
	if err != nil {
		ours.Close()
		return err
	}
	p.running = process
	p.ended.Add(1)
	p.line = NewLine(ours, p.keeper, func() {
		defer p.ended.Done()
		p.over(process, raw)
	})
	p.line.say(word{Hello: &p.hello})
	return nil
}

// fork gives the process its listener by number: os.File.Fd would make it block.
func (p *Process) fork(raw syscall.RawConn, null, line *os.File) (process *os.Process, err error) {
	failed := raw.Control(func(listener uintptr) {
		var pid int
		files := []uintptr{null.Fd(), null.Fd(), null.Fd(), line.Fd(), listener}
		pid, err = syscall.ForkExec("/proc/self/exe", []string{Name},
			&syscall.ProcAttr{Dir: "/", Env: []string{}, Files: files})
		if err == nil {
			process, err = os.FindProcess(pid)
		}
	})
	if failed != nil {
		return nil, failed
	}
	return process, err
}

// over reaps a broker, and waits for the next connection.
func (p *Process) over(process *os.Process, raw syscall.RawConn) {
	_ = process.Kill() // it has no parent to speak to any more
	_, _ = process.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line.Close()
	p.line, p.running = nil, nil
	if !p.closed {
		p.await(raw)
	}
}

// SetLogin tells the broker of another login, see [Broker.SetLogin].
func (p *Process) SetLogin(access, scope string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.hello.Config.Login; l != nil {
		p.hello.Config.Login = &Login{Key: l.Key, Access: access, Scope: scope}
	}
	if p.line != nil {
		p.line.SetLogin(access, scope)
	}
}

// Close ends the broker, and waits until it is gone.
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

// Descriptors of the process.
const (
	lineDescriptor     = 3
	listenerDescriptor = 4
)

// Run is the process of a broker, where the words of the command line begin with
// its name: it serves until its parent is gone.
func Run(words []string) (status int, ran bool) {
	if len(words) != 1 || words[0] != Name {
		return 0, false
	}
	_ = run() // its end is the parent's, or is noticed by it
	return 0, true
}

func run() error {
	// What is read from hosts goes through small buffers; there is no need to
	// let garbage lie.
	const percent, limit = 50, 24 << 20
	debug.SetGCPercent(percent)
	debug.SetMemoryLimit(limit)
	if err := confineSelf(); err != nil {
		return err
	}
	line := os.NewFile(lineDescriptor, "line")
	conn, err := net.FileConn(line)
	if err != nil {
		return err
	}
	line.Close()
	listener, err := net.FileListener(os.NewFile(listenerDescriptor, "listener"))
	if err != nil {
		return err
	}
	parent := NewParent(conn)
	hello, err := parent.hello()
	if err != nil {
		return err
	}
	outward := NewOutward(hello.Proxies)
	b, err := New(hello.Config, parent, outward.Dial)
	if err != nil {
		return err
	}
	go NewProxy(b, hello.Password, outward).Serve(listener) //nolint:errcheck // it ends with this process
	return parent.Serve(b)
}

// readable is what looking up a name reads (resolv.conf(5), hosts(5), and where
// they lead on the usual systems).
var readable = []string{"/etc", "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager", "/nix/store"}

// confineSelf leaves this process the network, and nothing else of the host.
func confineSelf() error {
	read := slices.DeleteFunc(slices.Clone(readable), func(path string) bool {
		_, err := os.Stat(path)
		return err != nil
	})
	const files = 8192
	return confine.Self(confine.Options{
		Keep: []int{lineDescriptor, listenerDescriptor}, Read: read, Files: files,
		Calls: slices.Concat(confine.Sockets(), confine.Always(
			unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_SPLICE, unix.SYS_SENDFILE, unix.SYS_PIPE2,
			unix.SYS_GETUID, unix.SYS_UNAME,
		), []confine.Call{{Number: unix.SYS_SOCKET, When: []confine.Match{{
			Arg: 0, OneOf: []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK},
		}}}}),
	})
}
