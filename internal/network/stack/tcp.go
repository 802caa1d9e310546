package stack

import (
	"context"
	"errors"
	"net"
	"net/netip"
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
)

// Bounds of connections: how many may be dialled at a time, and what they can
// hold in memory. Measured on two processors: a download from this machine is at
// 22 to 25 Gbit/s with a largest buffer of 2 MiB, at 13 or at 22 with 1 MiB, and
// at 13 with 4 MiB.
const (
	mostDialling  = 512
	firstWindow   = 1 << 20
	largestBuffer = 2 << 20
)

// buffer is how much a connection may hold in each direction when there are so
// many.
func bufferFor(connections int) int64 {
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

// syns are the sequence numbers of connections that are being dialled: an ICMP
// error is believed only with them.
type syns struct {
	mu   sync.Mutex
	list map[tcpipstack.TransportEndpointID]uint32
}

func (s *syns) note(id tcpipstack.TransportEndpointID, number uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list == nil || len(s.list) > 2*mostDialling { // of some the forwarder took no notice
		s.list = map[tcpipstack.TransportEndpointID]uint32{}
	}
	s.list[id] = number
}

func (s *syns) take(id tcpipstack.TransportEndpointID) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	number := s.list[id]
	delete(s.list, id)
	return number
}

// noteSYN reports whether a segment is one that nobody sends in earnest, and
// remembers the number of one that opens a connection.
func (s *Stack) noteSYN(id tcpipstack.TransportEndpointID, p *tcpipstack.PacketBuffer) bool {
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

// acceptTCP serves one connection that the sandbox opens: it is dialled first,
// so that what is refused outside is refused inside.
func (s *Stack) acceptTCP(r *tcp.ForwarderRequest) {
	id := r.ID()
	to, number := addrPort(id.LocalAddress, id.LocalPort), s.syns.take(id)
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
	case flow.Terminate:
		s.terminate(r, f)
	case flow.Dial:
		s.connect(r, f, to, number)
	}
}

// serve answers at the stack's own address: questions for names.
func (s *Stack) serve(r *tcp.ForwarderRequest, port uint16) {
	const domain = 53
	if port != domain || s.DNS == nil {
		r.Complete(true)
		return
	}
	if c := s.complete(r); c != nil {
		o := &open{end: c.abort}
		if !s.flows.add(o) {
			c.abort()
			return
		}
		defer s.flows.remove(o)
		s.DNS.ServeStream(s.ctx, c.TCPConn)
	}
}

// connect dials and copies.
func (s *Stack) connect(r *tcp.ForwarderRequest, f flow.Flow, to netip.AddrPort, number uint32) {
	id := r.ID()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	pending := &open{flow: f, end: cancel}
	if !s.flows.add(pending) {
		r.Complete(true)
		return
	}
	defer s.flows.remove(pending)
	conn, dialled, err := s.dial(ctx, f)
	if err != nil {
		s.tellWhy(r, err, addrPort(id.RemoteAddress, id.RemotePort), to, number)
		return
	}
	outer := conn.(*net.TCPConn)
	p := &pair{outer: outer, open: &open{flow: dialled}}
	p.open.end = p.breakOff
	s.begun(p.open) // before the sandbox knows, which may end at once
	defer s.over(p.open)
	if p.inner = s.complete(r); p.inner == nil {
		reset(outer)
		return
	}
	s.flows.replace(pending, p.open)
	defer s.flows.remove(p.open)
	s.carry(ctx, p, f.Name != "")
}

// carry copies a connection until it is over, unless the machine has moved during
// the dial: ctx ends then, or what was dialled is no longer admitted.
func (s *Stack) carry(ctx context.Context, p *pair, judged bool) {
	if ctx.Err() != nil || s.admit(ctx, p.open.flow) != nil {
		p.breakOff()
		return
	}
	p.inner.resize(bufferFor(s.flows.count()))
	if err := p.run(ctx, judged); err != nil {
		s.Journal.Refused(p.open.flow, err.Error())
	}
}

// terminate hands a connection to the terminator.
func (s *Stack) terminate(r *tcp.ForwarderRequest, f flow.Flow) {
	c := s.complete(r)
	if c == nil {
		return
	}
	o := &open{flow: f, end: c.abort}
	if !s.flows.add(o) {
		c.abort()
		return
	}
	defer s.flows.remove(o)
	c.resize(bufferFor(s.flows.count()))
	s.begun(o)
	counted := &countedConn{Conn: c.TCPConn, open: o}
	s.Terminator.Serve(s.ctx, counted, f.Name, f.To.Port(), func(ctx context.Context) (net.Conn, error) {
		return s.dialUpstream(ctx, f)
	})
	counted.Close()
	s.over(o)
}

// dialUpstream is a terminator's way to the host that it answers for. What is open
// is judged anew after each move, as other connections are.
func (s *Stack) dialUpstream(ctx context.Context, f flow.Flow) (net.Conn, error) {
	conn, dialled, err := s.dial(ctx, f)
	if err != nil {
		return nil, err
	}
	u := &upstreamConn{Conn: conn, all: s.upstreams}
	u.open = &open{flow: dialled, end: func() { reset(conn.(*net.TCPConn)) }}
	if !s.upstreams.add(u.open) {
		conn.Close()
		return nil, errors.New("too many connections")
	}
	if err := s.admit(ctx, dialled); err != nil { // the machine has moved during the dial
		u.Close()
		return nil, err
	}
	return u, nil
}

// upstreamConn is one of [Stack.upstreams] until it is closed.
type upstreamConn struct {
	net.Conn
	open *open
	all  flows
}

func (c *upstreamConn) Close() error {
	c.all.remove(c.open)
	return c.Conn.Close()
}

// tellWhy ends a request for a connection as the host's own attempt ended.
func (s *Stack) tellWhy(r *tcp.ForwarderRequest, err error, client, to netip.AddrPort, number uint32) {
	var lookup *net.DNSError
	switch {
	case errors.Is(err, errRefused), errors.Is(err, syscall.ECONNREFUSED):
		r.Complete(true)
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EADDRNOTAVAIL):
		r.Complete(false)
		s.unreachable(header.TCPProtocolNumber, client, to, number, noNetwork)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.EACCES), errors.As(err, &lookup):
		r.Complete(false)
		s.unreachable(header.TCPProtocolNumber, client, to, number, noHost)
	default:
		r.Complete(false) // it took too long; the client's next SYN asks again
	}
}

// complete makes the connection with the sandbox; nil: it did not come about.
func (s *Stack) complete(r *tcp.ForwarderRequest) *inner {
	queue := new(waiter.Queue)
	endpoint, err := r.CreateEndpoint(queue)
	r.Complete(false) // an old connection may still be there: the next SYN asks again
	if err != nil {
		return nil
	}
	// A reset that was lost on a full queue is never sent again.
	endpoint.SocketOptions().SetKeepAlive(true)
	idle, interval := tcpip.KeepaliveIdleOption(2*time.Minute), tcpip.KeepaliveIntervalOption(10*time.Second)
	endpoint.SetSockOpt(&idle)
	endpoint.SetSockOpt(&interval)
	return &inner{TCPConn: gonet.NewTCPConn(queue, endpoint), endpoint: endpoint, queue: queue}
}

// inner is a connection with the sandbox.
type inner struct {
	*gonet.TCPConn
	endpoint tcpip.Endpoint
	queue    *waiter.Queue
}

func (c *inner) abort() { c.endpoint.Abort() }

func (c *inner) resize(size int64) {
	c.endpoint.SocketOptions().SetReceiveBufferSize(size, true)
	c.endpoint.SocketOptions().SetSendBufferSize(size, true)
}

// failed reports whether the sandbox has reset the connection.
func (c *inner) failed() bool { return tcp.EndpointState(c.endpoint.State()) == tcp.StateError }

// countedConn counts what a terminator reads and writes.
type countedConn struct {
	net.Conn
	open *open
}

func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.open.sent.Add(int64(n))
	return n, err
}

func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.open.received.Add(int64(n))
	return n, err
}

// CloseWrite ends what is said to the sandbox.
func (c *countedConn) CloseWrite() error { return c.Conn.(*gonet.TCPConn).CloseWrite() }

// reset closes a connection so that its other end sees a reset.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	c.Close()
}
