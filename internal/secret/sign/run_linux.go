package sign

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"runtime/debug"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"claudebox/internal/linux/accept"
	"claudebox/internal/linux/confine"
	"claudebox/internal/linux/ondemand"
	"claudebox/internal/secret/sshagent"
)

// Run is the main function of the agent's process: it confines the process, and serves the sandbox until its parent is
// gone.
func Run() error {
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
	var told sshagent.Hello
	if err := json.NewDecoder(line).Decode(&told); err != nil {
		return err
	}
	keys, err := keysOf(told)
	if err != nil {
		return err
	}
	teller := &teller{out: json.NewEncoder(line)}
	room := make(chan struct{}, clients)
	go accept.Each(listener, room, func(c net.Conn) { //nolint:errcheck // it ends with the process
		serve(c, &filter{rules: told.Rules, keys: keys, tell: teller.tell})
	})
	_, err = io.Copy(io.Discard, line) // until the parent is gone
	return err
}

// clients is how many are served at once; more wait.
const clients = 64

// keysOf returns the agent that signs: the user's own, one with the key that the parent sent, or both.
func keysOf(told sshagent.Hello) (agent.ExtendedAgent, error) {
	if !told.Agent {
		ring := agent.NewKeyring().(agent.ExtendedAgent)
		return ring, add(ring, told.Key)
	}
	conn, err := net.FileConn(os.NewFile(ondemand.Files, "agent"))
	if err != nil {
		return nil, err
	}
	if told.Key == nil {
		return agent.NewClient(ending{conn}), nil
	}
	users := agent.NewClient(conn)
	ring := agent.NewKeyring().(agent.ExtendedAgent)
	return both{ring, users}, add(ring, told.Key)
}

// ending is the connection to the user's agent. If it ends, this process does, and the next client's has a new one.
type ending struct{ net.Conn }

func (e ending) Read(p []byte) (int, error)  { return e.alive(e.Conn.Read(p)) }
func (e ending) Write(p []byte) (int, error) { return e.alive(e.Conn.Write(p)) }

func (e ending) alive(n int, err error) (int, error) {
	if err != nil {
		os.Exit(1)
	}
	return n, nil
}

// add adds the private key in a file's content to an agent.
func add(ring agent.Agent, file []byte) error {
	key, err := ssh.ParseRawPrivateKey(file)
	if err != nil {
		return err
	}
	return ring.Add(agent.AddedKey{PrivateKey: key})
}

// both is an agent with a key of its own and with those of the user's agent.
type both struct {
	agent.ExtendedAgent // the agent with its own key
	users               agent.ExtendedAgent
}

func (b both) List() ([]*agent.Key, error) {
	own, err := b.ExtendedAgent.List()
	if err != nil {
		return nil, err
	}
	more, _ := b.users.List() // a user's agent that is gone has none
	return append(own, more...), nil
}

func (b both) SignWithFlags(key ssh.PublicKey, data []byte, flags agent.SignatureFlags) (*ssh.Signature, error) {
	if signature, err := b.ExtendedAgent.SignWithFlags(key, data, flags); err == nil {
		return signature, nil
	}
	return b.users.SignWithFlags(key, data, flags)
}

// teller reports uses of keys to the parent, equal ones at most 10,000 times: a program
// in the sandbox can go on asking for ever.
type teller struct {
	mu   sync.Mutex
	out  *json.Encoder
	told map[sshagent.Use]int
}

func (t *teller) tell(u sshagent.Use) {
	const most = 10000
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.told == nil {
		t.told = map[sshagent.Use]int{}
	}
	if t.told[u]++; t.told[u] <= most {
		_ = t.out.Encode(u) // a parent that is gone ends this process
	}
}
