package stack

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	tcpipstack "gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"

	"claudebox/internal/network/flow"
	"claudebox/internal/network/gate"
	"claudebox/internal/network/policy"
)

// Bounds of connections: how many are dialled at the same time, and the bytes of their buffers.
const (
	mostDialling  = 512
	largestBuffer = 1 << 20
)

// bufferSize returns the bytes that a connection may buffer in each direction: the more there are, the fewer.
func (s *Stack) bufferSize() int64 {
	connections := s.flows.count()
	for _, step := range []struct {
		most int
		size int64
	}{{4, largestBuffer}, {16, 256 << 10}, {64, 64 << 10}, {256, 16 << 10}} {
		if connections <= step.most {
			return step.size
		}
	}
	return 8 << 10
}

// syns has the sequence numbers of the SYNs of connections that are being dialled. The sandbox's kernel
// accepts an ICMP error only with the number of its SYN.
type syns struct {
	mu   sync.Mutex
	list map[tcpipstack.TransportEndpointID]uint32
}

func (s *syns) note(id tcpipstack.TransportEndpointID, sequence uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list == nil || len(s.list) > 2*mostDialling { // the numbers of SYNs that the forwarder ignores stay
		s.list = map[tcpipstack.TransportEndpointID]uint32{}
	}
	s.list[id] = sequence
}

func (s *syns) take(id tcpipstack.TransportEndpointID) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	sequence := s.list[id]
	delete(s.list, id)
	return sequence
}

// checkSYN remembers the sequence number of a SYN. It reports whether the segment is an invalid SYN, which is to be
// dropped.
func (s *Stack) checkSYN(id tcpipstack.TransportEndpointID, p *tcpipstack.PacketBuffer) bool {
	t := header.TCP(p.TransportHeader().Slice())
	if len(t) < header.TCPMinimumSize || t.Flags()&(header.TCPFlagSyn|header.TCPFlagAck) != header.TCPFlagSyn {
		return false
	}
	if t.Flags()&(header.TCPFlagFin|header.TCPFlagRst) != 0 || id.LocalPort == 0 || id.RemotePort == 0 {
		return true
	}
	s.syns.note(id, t.SequenceNumber())
	return false
}

// acceptTCP serves one connection that the sandbox opens. It accepts the connection only once the host outside
// has been dialled, so that the sandbox sees a refusal by that host as one.
func (s *Stack) acceptTCP(r *tcp.ForwarderRequest) {
	id := r.ID()
	to, sequence := addrPort(id.LocalAddress, id.LocalPort), s.syns.take(id)
	if isServer(to.Addr()) {
		s.serve(r, to.Port())
		return
	}
	f, known := s.flowOf(flow.TCP, to)
	verdict := flow.Verdict{}
	if known {
		verdict = s.judge(f)
	}
	switch verdict.Action {
	case flow.Refuse:
		r.Complete(true)
	case flow.Answer:
		s.answer(r, f)
	case flow.Dial:
		s.connect(r, f, to, sequence)
	}
}

// serve serves a connection to the stack's own address: DNS queries, and nothing else.
func (s *Stack) serve(r *tcp.ForwarderRequest, port uint16) {
	const domain = 53
	if port != domain || s.DNS == nil {
		r.Complete(true)
		return
	}
	if c, o := s.acceptHere(r, flow.Flow{}); c != nil {
		defer s.flows.remove(o)
		s.DNS.ServeStream(s.ctx, c)
	}
}

// acceptHere accepts a connection that is served in this process, and adds it to the flows. It returns nil if that
// fails.
func (s *Stack) acceptHere(r *tcp.ForwarderRequest, f flow.Flow) (*inner, *openFlow) {
	c := s.complete(r)
	if c == nil {
		return nil, nil
	}
	o := &openFlow{flow: f, end: c.abort}
	if !s.flows.add(o) {
		c.abort()
		return nil, nil
	}
	return c, o
}

// connect dials the host of a flow, accepts the sandbox's connection, and copies between them.
func (s *Stack) connect(r *tcp.ForwarderRequest, f flow.Flow, to netip.AddrPort, sequence uint32) {
	id := r.ID()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	pending := &openFlow{flow: f, end: cancel}
	if !s.flows.add(pending) {
		r.Complete(true)
		return
	}
	defer s.flows.remove(pending)
	conn, dialled, err := s.dial(ctx, f)
	if err != nil {
		s.reject(r, err, addrPort(id.RemoteAddress, id.RemotePort), to, sequence)
		return
	}
	p := newPair(conn.(*net.TCPConn), &openFlow{flow: dialled})
	p.opens = s.opens
	s.noteOpened(p.open) // before the connection is accepted: the session may end right after that
	defer s.noteClosed(p.open)
	if p.inner = s.complete(r); p.inner == nil {
		reset(conn.(*net.TCPConn))
		return
	}
	s.flows.replace(pending, p.open)
	defer s.flows.remove(p.open)
	s.carry(ctx, p, f.Name != "")
}

// carry copies a connection until it is over. It resets the connection instead if the host has changed during
// the dial so that the flow is no longer allowed. [Stack.SetHost] ended ctx then, or admit fails.
func (s *Stack) carry(ctx context.Context, p *pair, judged bool) {
	if ctx.Err() != nil || s.admit(ctx, p.open.flow) != nil {
		p.breakOff()
		return
	}
	var g *gate.Gate
	if judged {
		g = gate.New(p.open.flow.Name, p.open.flow.To.Port())
	}
	if no := p.run(ctx, s.bufferSize, g); no != nil {
		s.Journal.Refused(p.open.flow, no.Error())
	}
}

// opens is the command by which the user lets the sandbox reach a host, in its canonical form; empty: none does.
func (s *Stack) opens(host string) string {
	if rules, _ := s.current(); rules.Tier != policy.TierAllow || rules.Knows(host) || !strings.Contains(host, ".") {
		return ""
	}
	return "claudebox allow-host --session " + host
}

// answer accepts a connection and has the answerer serve it.
func (s *Stack) answer(r *tcp.ForwarderRequest, f flow.Flow) {
	c, o := s.acceptHere(r, f)
	if c == nil {
		return
	}
	defer s.flows.remove(o)
	c.resize(s.bufferSize())
	s.noteOpened(o)
	counted := &countedConn{inner: c, open: o}
	s.Answerer.Serve(s.ctx, counted, f.Name, f.To.Port(), func(ctx context.Context) (net.Conn, error) {
		return s.dialUpstream(ctx, f)
	})
	counted.Close()
	s.noteClosed(o)
}

// dialUpstream connects the answerer to the host that it answers for. Like other connections, this one is judged
// again whenever the host changes.
func (s *Stack) dialUpstream(ctx context.Context, f flow.Flow) (net.Conn, error) {
	conn, dialled, err := s.dial(ctx, f)
	if err != nil {
		return nil, err
	}
	u := &upstreamConn{Conn: conn, all: s.answererDials}
	u.open = &openFlow{flow: dialled, end: func() { reset(conn.(*net.TCPConn)) }}
	if !s.answererDials.add(u.open) {
		conn.Close()
		return nil, errors.New("too many connections")
	}
	if err := s.admit(ctx, dialled); err != nil { // the host has changed during the dial
		u.Close()
		return nil, err
	}
	return u, nil
}

// upstreamConn is a connection that is in [Stack.answererDials] until it is closed.
type upstreamConn struct {
	net.Conn
	open *openFlow
	all  flows
}

func (c *upstreamConn) Close() error {
	c.all.remove(c.open)
	return c.Conn.Close()
}

// reject ends a request for a connection in the same way as the host's dial ended.
func (s *Stack) reject(r *tcp.ForwarderRequest, err error, client, to netip.AddrPort, sequence uint32) {
	var lookup *net.DNSError
	switch {
	case errors.Is(err, errRefused), errors.Is(err, syscall.ECONNREFUSED):
		r.Complete(true)
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EADDRNOTAVAIL):
		r.Complete(false)
		s.sendUnreachable(header.TCPProtocolNumber, client, to, sequence, noNetwork)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.EACCES), errors.As(err, &lookup):
		r.Complete(false)
		s.sendUnreachable(header.TCPProtocolNumber, client, to, sequence, noHost)
	default:
		r.Complete(false) // a timeout: no answer, so that the client's next SYN is a new request
	}
}

// complete accepts a connection of the sandbox. It returns nil if that fails.
func (s *Stack) complete(r *tcp.ForwarderRequest) *inner {
	queue := new(waiter.Queue)
	endpoint, err := r.CreateEndpoint(queue)
	r.Complete(false) // after an error, the client's next SYN is a new request
	if err != nil {
		return nil
	}
	// Keepalive, as a reset is sent only once, and may be lost on a full queue.
	endpoint.SocketOptions().SetKeepAlive(true)
	idle, interval := tcpip.KeepaliveIdleOption(2*time.Minute), tcpip.KeepaliveIntervalOption(10*time.Second)
	endpoint.SetSockOpt(&idle)
	endpoint.SetSockOpt(&interval)
	return &inner{gonet.NewTCPConn(queue, endpoint), endpoint, queue}
}

// countedConn counts the bytes that an answerer reads and writes.
type countedConn struct {
	*inner
	open *openFlow
}

func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.inner.Read(b)
	c.open.sent.Add(int64(n))
	return n, err
}

func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.inner.Write(b)
	c.open.received.Add(int64(n))
	return n, err
}

// reset closes a connection so that its other end sees a reset.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	c.Close()
}
