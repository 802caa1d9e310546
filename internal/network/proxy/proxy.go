package proxy

import (
	"context"
	"errors"
	"net"
	"time"

	"claudebox/internal/network/hostpattern"
	"claudebox/internal/network/relay"
)

// most is how many connections are served at a time. Others wait in the
// listener's queue.
const most = 2048

// Proxy serves a sandbox.
type Proxy struct {
	allow   hostpattern.List
	journal *Journal
	dial    func(context.Context, target) (*net.TCPConn, error)
	slots   chan struct{}
}

// New makes a proxy to the hosts of a list.
func New(allow hostpattern.List, j *Journal) *Proxy {
	d := dialer{resolver: &net.Resolver{PreferGo: true}, networks: hostNetworks}
	return &Proxy{allow: allow, journal: j, dial: d.dial, slots: make(chan struct{}, most)}
}

// Serve accepts connections until the listener is closed.
func (p *Proxy) Serve(l net.Listener) error {
	for {
		p.slots <- struct{}{}
		conn, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			// Out of descriptors, most likely: other connections have to end
			// first. There is nobody to tell.
			<-p.slots
			time.Sleep(10 * time.Millisecond)
			continue
		}
		go func() {
			defer func() { <-p.slots }()
			p.serve(&client{TCPConn: conn.(*net.TCPConn)})
		}()
	}
}

func (p *Proxy) serve(c *client) {
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(headTime))
	err := p.protocol(c)
	p.tell(err)
	if err != nil && c.refuse != nil {
		c.refuse(err)
	}
}

// tell writes down what was refused or failed. It comes before the client learns
// of it: that may be the last that the session does.
func (p *Proxy) tell(err error) {
	var no *refusal
	var cannot *failure
	switch {
	case errors.As(err, &no):
		p.journal.refuse(no)
	case errors.As(err, &cannot):
		p.journal.note("failed", printable(cannot.Error()))
	}
}

// protocol tells SOCKS from HTTP by the first byte.
func (p *Proxy) protocol(c *client) error {
	if err := c.more(longestHead); err != nil {
		return err
	}
	switch c.pending[0] {
	case socks5:
		return p.socks(c)
	case socks4:
		return &refusal{what: "SOCKS4", why: "only SOCKS5 is served"}
	}
	return p.http(c)
}

func (p *Proxy) socks(c *client) error {
	t, err := c.socksTarget()
	if err != nil {
		return err
	}
	server, err := p.reach(t)
	if err != nil {
		return err
	}
	c.socksReply(nil)
	c.refuse = nil
	return p.tunnel(c, server, t)
}

// reach connects to a target that the list admits.
func (p *Proxy) reach(t target) (*net.TCPConn, error) {
	by, listed := p.allow.Find(t.name, t.port)
	if !listed {
		return nil, &refusal{what: t.String(), status: 403}
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialTime)
	defer cancel()
	server, err := p.dial(ctx, t)
	if err == nil {
		p.journal.note("reached", t.String()+" by "+by.String())
	}
	return server, err
}

// tunnel carries bytes both ways once the client's first ones are judged.
// Meanwhile the server may speak: with some protocols it begins.
func (p *Proxy) tunnel(c *client, server *net.TCPConn, t target) error {
	c.SetReadDeadline(time.Time{})
	if t.port == portHTTP && !c.speaksTLS() {
		return c.plainTunnel(server, t)
	}
	back := make(chan struct{})
	go func() {
		defer close(back)
		relay.OneWay(c.TCPConn, server)
	}()
	err := c.judge(t)
	if err == nil {
		err = c.flush(server)
	}
	if err == nil {
		relay.OneWay(server, c.TCPConn)
	} else {
		p.tell(err)
		c.Close()
		server.Close()
	}
	<-back
	server.Close()
	return nil
}

// speaksTLS waits for the first byte. A connection that ends before it speaks
// nothing.
func (c *client) speaksTLS() bool {
	if len(c.pending) == 0 && c.more(longestHello) != nil {
		return false
	}
	return c.pending[0] == recordHandshake
}

// plainTunnel is a tunnel in which HTTP is spoken in the clear. It is judged
// like a request to the proxy, and carries one.
func (c *client) plainTunnel(server *net.TCPConn, t target) error {
	c.refuse = c.answer
	h, err := c.readHead()
	if err == nil && h.target[0] != '/' {
		err = malformed(t.String(), "a tunnel to port 80 that is no request to a server")
	}
	if err == nil {
		err = h.wantHost(t, true)
	}
	var content body
	if err == nil {
		content, err = h.framing()
	}
	if err != nil {
		server.Close()
		return err
	}
	return c.exchange(server, h.origin(t, h.target), content)
}

// judge reads as much of a tunnel as reports whether it is for its target.
func (c *client) judge(t target) error {
	for {
		if len(c.pending) > 0 {
			name, err := serverName(c.pending)
			switch {
			case errors.Is(err, errNotHello) && t.port != portHTTPS && c.pending[0] != recordHandshake:
				return nil // another protocol; the list names its port
			case err == nil:
				return wantName(t, name)
			case !errors.Is(err, errShort):
				return &refusal{what: t.String(), why: err.Error()}
			}
		}
		err := c.more(longestHello)
		if err != nil && len(c.pending) == 0 && t.port != portHTTPS {
			return nil // who only listens, in another protocol
		}
		if err != nil {
			return err
		}
	}
}

func wantName(t target, name string) error {
	if canonical, err := hostpattern.Canonical(name); err != nil || canonical != t.name {
		return &refusal{what: t.String(), why: "its TLS is for another host: " + name}
	}
	return nil
}
