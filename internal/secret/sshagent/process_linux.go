package sshagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"claudebox/internal/linux/ondemand"
)

// Name is what the process of an agent is called with, see package sign.
const Name = "claudebox-ssh-agent"

// Request is what [Start] is asked for.
type Request struct {
	Program string // that is an agent
	Dir     string // where the socket is made, and taken away from
	Socket  string // its name
	Rules   Rules
	Key     []byte // a private key without a passphrase, as a file holds it; none: the agent of the user has it
	Agent   string // socket of that; empty: there is none
	Tell    func(Use)
	Failed  func(error)
}

// Hello is what the process is told.
type Hello struct {
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
	speak := func(line *os.File) { speak(line, r) }
	service := ondemand.Service{Program: r.Program, Name: Name, Failed: r.Failed, Serve: speak}
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
	return l.File()
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
