package broker

import (
	"net"
	"os"
	"sync"

	"claudebox/internal/linux/ondemand"
)

// Name is the argv[0] of a broker's process, see package swap.
const Name = "claudebox-broker"

// Process is a broker with a proxy on loopback, in a confined process of its
// own, for a sandbox that shares the host's network. The process is started by the first
// connection: most commands make none.
type Process struct {
	*ondemand.Process
	keeper Keeper

	mu    sync.Mutex
	hello Hello
	line  *Line // nil: the broker is not running
}

// Listen listens on a free port of loopback, for [Start].
func Listen() (listener *os.File, port int, err error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, 0, err
	}
	defer l.Close()
	listener, err = l.(*net.TCPListener).File()
	return listener, l.Addr().(*net.TCPAddr).Port, err
}

// Start runs program as a broker on listener when a client
// connects. A broker that has ended is started again by the next connection, with the same certificates,
// which its sandbox knows already. The caller must call Close.
func Start(program string, listener *os.File, hello Hello, keeper Keeper) (*Process, error) {
	p := &Process{keeper: keeper, hello: hello}
	var err error
	failed := func(err error) {
		keeper.Report(Refusal{Why: "the broker cannot be started, so no request could use a secret: " + err.Error()})
	}
	p.Process, err = ondemand.Start(listener,
		ondemand.Service{Program: program, Name: Name, Serve: p.speak, Failed: failed})
	return p, err
}

// speak serves one run of the broker's process until the process is gone.
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

// SetLogin gives the broker another login, see [Line.SetLogin].
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
