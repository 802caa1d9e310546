package broker

import (
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"sync"

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
// own, for a sandbox that shares the host's network.
type Process struct {
	keeper   Keeper
	listener *os.File
	gone     chan struct{} // closed when no broker is started any more

	mu      sync.Mutex
	hello   Hello
	line    *Line
	running *os.Process
	starts  int
	closed  bool
}

// Listen takes a port of loopback for [Start].
func Listen() (listener *os.File, port int, err error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, 0, err
	}
	defer l.Close()
	listener, err = l.(*net.TCPListener).File()
	return listener, l.Addr().(*net.TCPAddr).Port, err
}

// Start starts a broker at a listener. One that ends is started again, with
// what its sandbox knows already. Close it.
func Start(listener *os.File, hello Hello, keeper Keeper) (*Process, error) {
	p := &Process{keeper: keeper, listener: listener, hello: hello, gone: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.start(); err != nil {
		listener.Close()
		return nil, fmt.Errorf("start the broker: %w", err)
	}
	return p, nil
}

// start is called with the lock held.
func (p *Process) start() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	theirs := os.NewFile(uintptr(pair[1]), "broker")
	defer theirs.Close()
	if err := unix.SetNonblock(pair[0], true); err != nil {
		return err
	}
	ours := os.NewFile(uintptr(pair[0]), "broker")
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		ours.Close()
		return err
	}
	defer null.Close()
	p.running, err = os.StartProcess("/proc/self/exe", []string{Name}, &os.ProcAttr{
		Dir: "/", Env: []string{}, Files: []*os.File{null, null, null, theirs, p.listener},
	})
	if err != nil {
		ours.Close()
		return err
	}
	p.starts++
	process := p.running
	p.line = NewLine(ours, p.keeper, func() { p.ended(process) })
	p.line.say(word{Hello: &p.hello})
	return nil
}

// maxStarts bounds how often a broker is started in one session.
const maxStarts = 20

// ended starts the broker anew when it ended by itself.
func (p *Process) ended(process *os.Process) {
	_, _ = process.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line.Close()
	if p.closed || p.starts >= maxStarts || p.start() != nil {
		p.listener.Close()
		close(p.gone)
	}
}

// SetLogin tells the broker of another login, see [Broker.SetLogin].
func (p *Process) SetLogin(access, scope string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.hello.Config.Login; l != nil {
		p.hello.Config.Login = &Login{Key: l.Key, Access: access, Scope: scope}
	}
	p.line.SetLogin(access, scope)
}

// Close ends the broker, and waits until it is gone.
func (p *Process) Close() {
	p.mu.Lock()
	p.closed = true
	_ = p.running.Kill() // it may be gone
	p.mu.Unlock()
	<-p.gone
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
	if run() != nil {
		const failed = 125
		return failed, true
	}
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
