package sshagent

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"

	"claudebox/internal/linux/ondemand"
	"claudebox/internal/linux/sockets"
)

// Name is the argv[0] of an agent's process, see package sign.
const Name = "claudebox-ssh-agent"

// Request is what [Start] needs.
type Request struct {
	Program string                 // path of the program to run as the agent
	Dir     string                 // folder in which the socket is made
	Socket  string                 // name of the socket
	Left    func(name string) bool // chooses the sockets there that killed sessions have left
	Rules   Rules
	Key     []byte // a private key without a passphrase, in the format of a file; nil: the user's agent has the key
	Agent   string // socket of the user's agent; empty: there is none
	Tell    func(Use)
	Failed  func(error)
}

// Hello is the first message to the process.
type Hello struct {
	Rules Rules  `json:"rules"`
	Key   []byte `json:"key,omitempty"`
	Agent bool   `json:"agent"` // the process gets a connection to the user's agent as a descriptor
}

// Process is the agent of one sandbox.
type Process struct {
	*ondemand.Process
	socket string
}

// Start makes the socket, whose leftovers it removes, and starts a process that serves it when a client connects.
// The caller must call Close.
func Start(r Request) (*Process, error) {
	socket := filepath.Join(r.Dir, r.Socket)
	l, err := sockets.ListenIn(r.Dir, r.Socket, r.Left)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	listener, err := l.File()
	if err != nil {
		return nil, errors.Join(err, os.Remove(socket))
	}
	speak := func(line *os.File) { speak(line, r) }
	service := ondemand.Service{Program: r.Program, Name: Name, Failed: r.Failed, Serve: speak}
	if r.Agent != "" {
		service.Open = func() ([]*os.File, error) { return connect(r.Agent) }
	}
	p := &Process{socket: socket}
	if p.Process, err = ondemand.Start(listener, service); err != nil {
		return nil, errors.Join(err, os.Remove(socket))
	}
	return p, nil
}

// Close ends the agent and removes its socket.
func (p *Process) Close() {
	p.Process.Close()
	_ = os.Remove(p.socket) // if this fails, the next launch removes it
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

// speak sends the process its first message, and passes the uses that it reports to r.Tell.
func speak(line *os.File, r Request) {
	if json.NewEncoder(line).Encode(Hello{r.Rules, r.Key, r.Agent != ""}) != nil {
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
