package stack

import (
	"errors"
	"io"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"

	"claudebox/internal/network/flow"
)

// How long an exchange of datagrams is kept without a datagram, before and after the first answer.
const (
	unansweredTime = 30 * time.Second
	answeredTime   = 3 * time.Minute
)

// acceptUDP serves an exchange that a datagram of the sandbox begins. It returns at once, as it is called while
// the stack handles a packet. If it returns false, the stack answers that the port is unreachable.
func (s *Stack) acceptUDP(r *udp.ForwarderRequest) bool {
	id := r.ID()
	to := addrPort(id.LocalAddress, id.LocalPort)
	const domain = 53
	isQuery := isServer(to.Addr()) && to.Port() == domain && s.DNS != nil
	f := flow.Flow{Proto: flow.UDP, To: to}
	if !isQuery {
		var known bool
		if f, known = s.flowOf(flow.UDP, to); !known || isServer(to.Addr()) || id.RemotePort == 0 {
			return false
		}
		if v := s.judge(f); v.Action != flow.Dial {
			return false
		}
	}
	select {
	case s.udps <- struct{}{}:
	default:
		return true
	}
	queue := new(waiter.Queue)
	endpoint, err := r.CreateEndpoint(queue)
	if err != nil {
		<-s.udps
		return true
	}
	inner := &inner{gonet.NewUDPConn(queue, endpoint), endpoint, queue}
	go func() {
		defer func() { <-s.udps }()
		if isQuery {
			s.DNS.ServePacket(s.ctx, inner)
			return
		}
		s.exchange(inner, f, addrPort(id.RemoteAddress, id.RemotePort))
	}()
	return true
}

// exchange dials the address of a flow and copies datagrams in both directions until they cease.
func (s *Stack) exchange(inner *inner, f flow.Flow, client netip.AddrPort) {
	defer inner.Close()
	conn, _, err := s.dial(s.ctx, f)
	if err != nil {
		s.sendUnreachable(header.UDPProtocolNumber, client, f.To, 0, noNetwork)
		return
	}
	o := &openFlow{flow: f, end: func() { conn.Close(); inner.Close() }}
	defer o.end()
	if !s.flows.add(o) {
		return
	}
	defer s.flows.remove(o)
	if s.admit(s.ctx, f) != nil { // the host has changed during the dial
		return
	}
	s.noteOpened(o)
	patience := func() time.Duration {
		if o.received.Load() > 0 {
			return answeredTime
		}
		return unansweredTime
	}
	outside := outer{conn, false}
	var both sync.WaitGroup
	both.Go(func() {
		copyPieces(lossy{counted{conn, &o.sent}}, inner, longestDatagram, patience)
		o.end()
	})
	both.Go(func() {
		err := copyPieces(lossy{counted{inner, &o.received}}, outside, longestDatagram, patience)
		if errors.Is(err, syscall.ECONNREFUSED) {
			s.sendUnreachable(header.UDPProtocolNumber, client, f.To, 0, noPort)
		}
		o.end()
	})
	both.Wait()
	s.noteClosed(o)
}

// longestDatagram returns how many bytes a datagram has, at most.
func longestDatagram() int { return 64 << 10 }

// lossy is a writer of datagrams, each of which may be lost.
type lossy struct{ io.Writer }

func (w lossy) Write(b []byte) (int, error) {
	_, _ = w.Writer.Write(b)
	return len(b), nil
}
