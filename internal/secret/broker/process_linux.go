package broker

import (
	"net"
	"os"
	"runtime/debug"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/confine"
	"claudebox/internal/linux/ondemand"
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
	*ondemand.Process
	keeper Keeper

	mu    sync.Mutex
	hello Hello
	line  *Line // nil: it does not run
}

// Listen takes a port of loopback for [Start].
func Listen() (listener *os.File, port int, err error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, 0, err
	}
	defer l.Close()
	listener, err = ondemand.Copy(l.(*net.TCPListener))
	return listener, l.Addr().(*net.TCPAddr).Port, err
}

// Start starts a broker at a listener when somebody connects. One that ends is
// started again by the next connection, with what its sandbox knows already.
// Close it.
func Start(listener *os.File, hello Hello, keeper Keeper) (*Process, error) {
	p := &Process{keeper: keeper, hello: hello}
	var err error
	p.Process, err = ondemand.Start(listener, ondemand.Service{Name: Name, Serve: p.speak, Failed: func(err error) {
		keeper.Report(Refusal{Host: "any host", Why: "the broker cannot be started: " + err.Error()})
	}})
	return p, err
}

// speak speaks with the process of the broker until it is gone.
func (p *Process) speak(line *os.File) {
	ended := make(chan struct{})
	p.mu.Lock()
	p.line = NewLine(line, p.keeper, func() { close(ended) })
	p.line.say(word{Hello: &p.hello})
	p.mu.Unlock()
	<-ended
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line = nil
}

// SetLogin gives the broker another login, see [Broker.SetLogin].
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

// Run is the process of a broker, where the words of the command line begin with
// its name: it serves until its parent is gone.
func Run(words []string) (status int, ran bool) {
	return ondemand.Run(words, Name, run)
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
	line, listener, err := ondemand.Open()
	if err != nil {
		return err
	}
	parent := NewParent(line)
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
		Keep: []int{ondemand.Line, ondemand.Listener}, Read: read, Files: files,
		Calls: slices.Concat(confine.Sockets(), confine.Always(
			unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_SPLICE, unix.SYS_SENDFILE, unix.SYS_PIPE2,
			unix.SYS_GETUID, unix.SYS_UNAME,
		), []confine.Call{{Number: unix.SYS_SOCKET, When: []confine.Match{{
			Arg: 0, OneOf: []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK},
		}}}}),
	})
}
