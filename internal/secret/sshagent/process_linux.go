package sshagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"claudebox/internal/linux/confine"
	"claudebox/internal/linux/ondemand"
)

// Name is what the process of an agent is called with, see [Run].
const Name = "claudebox-ssh-agent"

// Request is what [Start] is asked for.
type Request struct {
	Dir    string // where the socket is made, and taken away from
	Socket string // its name
	Rules  Rules
	Key    []byte // a private key without a passphrase, as a file holds it; none: the agent of the user has it
	Agent  string // socket of that; empty: there is none
	Tell   func(Use)
	Failed func(error)
}

// hello is what the process is told.
type hello struct {
	Rules Rules  `json:"rules"`
	Key   []byte `json:"key,omitempty"`
	Agent bool   `json:"agent"` // a connection to the user's agent is its descriptor
}

// Process is an agent for a sandbox.
type Process struct {
	*ondemand.Process
	socket string
}

// Start makes the socket, and a process that serves it when somebody connects.
// Close it.
func Start(r Request) (*Process, error) {
	socket := filepath.Join(r.Dir, r.Socket)
	listener, err := listen(r.Dir, r.Socket)
	if err != nil {
		return nil, err
	}
	service := ondemand.Service{Name: Name, Failed: r.Failed, Serve: func(line *os.File) { speak(line, r) }}
	if r.Agent != "" {
		service.Files = func() ([]*os.File, error) { return connect(r.Agent) }
	}
	p := &Process{socket: socket}
	if p.Process, err = ondemand.Start(listener, service); err != nil {
		return nil, errors.Join(err, os.Remove(socket))
	}
	return p, nil
}

// listen listens in a folder whose path may be longer than a socket's can be.
func listen(folder, name string) (*os.File, error) {
	dir, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	short := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, err
	}
	defer l.Close()
	l.SetUnlinkOnClose(false)
	return ondemand.Copy(l)
}

// Close ends the agent.
func (p *Process) Close() {
	p.Process.Close()
	_ = os.Remove(p.socket) // what is left is taken away by the next launch
}

func connect(socket string) ([]*os.File, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	f, err := conn.(*net.UnixConn).File()
	return []*os.File{f}, err
}

// speak sends the process what it has to know, and receives what it does.
func speak(line *os.File, r Request) {
	if json.NewEncoder(line).Encode(hello{r.Rules, r.Key, r.Agent != ""}) != nil {
		return
	}
	for in := json.NewDecoder(line); ; {
		var use Use
		if in.Decode(&use) != nil {
			return
		}
		r.Tell(use)
	}
}

// Run is the process of an agent, where the words of the command line are its
// name: it serves until its parent is gone.
func Run(words []string) (status int, ran bool) {
	return ondemand.Run(words, Name, run)
}

func run() error {
	const limit = 8 << 20
	debug.SetMemoryLimit(limit)
	const files = 80
	keep := []int{ondemand.Line, ondemand.Listener, ondemand.Files}
	if err := confine.Self(confine.Options{Keep: keep, Calls: confine.Sockets(), Files: files}); err != nil {
		return err
	}
	line, listener, err := ondemand.Open()
	if err != nil {
		return err
	}
	var told hello
	if err := json.NewDecoder(line).Decode(&told); err != nil {
		return err
	}
	keys, err := keysOf(told)
	if err != nil {
		return err
	}
	teller := &teller{out: json.NewEncoder(line)}
	go accept(listener, func(c net.Conn) { serve(c, &filter{rules: told.Rules, keys: keys, tell: teller.tell}) })
	_, err = io.Copy(io.Discard, line) // until the parent is gone
	return err
}

// accept serves so many connections at once; more wait.
func accept(listener net.Listener, serve func(net.Conn)) {
	const clients = 64
	free := make(chan struct{}, clients)
	for {
		free <- struct{}{}
		c, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { <-free }()
			serve(c)
		}()
	}
}

// keysOf is the agent that has the keys.
func keysOf(told hello) (agent.ExtendedAgent, error) {
	if !told.Agent {
		ring := agent.NewKeyring().(agent.ExtendedAgent)
		return ring, add(ring, told.Key)
	}
	conn, err := net.FileConn(os.NewFile(ondemand.Files, "agent"))
	if err != nil {
		return nil, err
	}
	users := agent.NewClient(conn)
	if told.Key == nil {
		return users, nil
	}
	ring := agent.NewKeyring().(agent.ExtendedAgent)
	return both{ring, users}, add(ring, told.Key)
}

func add(ring agent.Agent, file []byte) error {
	key, err := ssh.ParseRawPrivateKey(file)
	if err != nil {
		return err
	}
	return ring.Add(agent.AddedKey{PrivateKey: key})
}

// both has a key of its own, and those of the user's agent.
type both struct {
	agent.ExtendedAgent // that one
	users               agent.ExtendedAgent
}

func (b both) List() ([]*agent.Key, error) {
	own, err := b.ExtendedAgent.List()
	if err != nil {
		return nil, err
	}
	more, _ := b.users.List() // one that is gone has none
	return append(own, more...), nil
}

func (b both) SignWithFlags(key ssh.PublicKey, data []byte, flags agent.SignatureFlags) (*ssh.Signature, error) {
	if signature, err := b.ExtendedAgent.SignWithFlags(key, data, flags); err == nil {
		return signature, nil
	}
	return b.users.SignWithFlags(key, data, flags)
}

// teller reports each kind of use to the parent, a number of times at most: an
// agent can go on for ever.
type teller struct {
	mu   sync.Mutex
	out  *json.Encoder
	told map[Use]int
}

func (t *teller) tell(u Use) {
	const most = 10000
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.told == nil {
		t.told = map[Use]int{}
	}
	if t.told[u]++; t.told[u] <= most {
		_ = t.out.Encode(u) // a parent that is gone ends this process
	}
}
