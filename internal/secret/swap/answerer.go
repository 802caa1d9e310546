package swap

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"sync"

	"claudebox/internal/secret/broker"
)

// Answerer is a broker within the process that makes a sandbox's network: it
// answers connections in place of the hosts that secrets are for.
type Answerer struct {
	broker *Broker

	mu    sync.Mutex
	dials map[broker.Target]func(context.Context) (net.Conn, error) // the last one given to Serve, by target
}

// NewAnswerer makes an answerer from a [broker.Config] in JSON and the roots, which are
// not part of that JSON. parent is the socket to the process's parent.
func NewAnswerer(config json.RawMessage, roots []byte, parent *os.File) (*Answerer, error) {
	var c broker.Config
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, err
	}
	c.Roots = roots
	t := &Answerer{dials: map[broker.Target]func(context.Context) (net.Conn, error){}}
	line := broker.NewParent(parent)
	var err error
	if t.broker, err = New(c, line, t.dial); err != nil {
		return nil, err
	}
	go line.Serve(t.broker) //nolint:errcheck // it ends with this process
	return t, nil
}

var errNoWay = errors.New("bug: nobody has connected to this host")

func (t *Answerer) dial(ctx context.Context, target broker.Target) (net.Conn, error) {
	t.mu.Lock()
	dial := t.dials[target]
	t.mu.Unlock()
	if dial == nil {
		return nil, errNoWay
	}
	return dial(ctx)
}

// Answers reports whether connections to a port of a host are answered here; port 0 means any port.
func (t *Answerer) Answers(name string, port uint16) bool {
	for _, target := range t.broker.targets {
		if target.Host == name && (port == 0 || target.Port == int(port)) {
			return true
		}
	}
	return false
}

// Serve serves a connection to a host and returns when it is closed or ctx ends; dial connects to the
// real host.
func (t *Answerer) Serve(
	ctx context.Context, client net.Conn, name string, port uint16, dial func(context.Context) (net.Conn, error),
) {
	target := broker.Target{Host: name, Port: int(port)}
	t.mu.Lock()
	t.dials[target] = dial
	t.mu.Unlock()
	done := &closing{Conn: client, closed: make(chan struct{})}
	t.broker.Serve(done, target)
	select {
	case <-done.closed:
	case <-ctx.Done():
		client.Close()
	}
}

// closing is a connection that signals when it is closed.
type closing struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

// Close closes the connection.
func (c *closing) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
