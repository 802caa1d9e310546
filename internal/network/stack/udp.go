package stack

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
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
	inner := &innerUDP{gonet.NewUDPConn(queue, endpoint), endpoint, queue}
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

// innerUDP is the sandbox's side of an exchange.
type innerUDP struct {
	*gonet.UDPConn
	endpoint tcpip.Endpoint
	queue    *waiter.Queue
}

// await waits, for at most the given time, until there is a datagram or an error to read, or the end.
func (c *innerUDP) await(most time.Duration) error {
	entry, readable := waiter.NewChannelEntry(waiter.ReadableEvents | waiter.EventHUp | waiter.EventErr)
	c.queue.EventRegister(&entry)
	defer c.queue.EventUnregister(&entry)
	if c.endpoint.Readiness(waiter.ReadableEvents|waiter.EventHUp|waiter.EventErr) != 0 {
		return nil
	}
	over := time.NewTimer(most)
	defer over.Stop()
	select {
	case <-readable:
		return nil
	case <-over.C:
		return os.ErrDeadlineExceeded
	}
}

// outerUDP is the host's side of an exchange.
type outerUDP struct{ *net.UDPConn }

func (c outerUDP) await(most time.Duration) error {
	if err := c.SetReadDeadline(time.Now().Add(most)); err != nil {
		return err
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var seen error // a pending error, such as ECONNREFUSED, is returned by one call only
	err = raw.Read(func(fd uintptr) bool {
		_, _, seen = unix.Recvfrom(int(fd), nil, unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return seen != unix.EAGAIN
	})
	if err == nil && seen != unix.EINTR {
		err = seen
	}
	return err
}

// datagramConn is one side of an exchange. By await a reader waits without holding a buffer.
type datagramConn interface {
	net.Conn
	await(most time.Duration) error
}

// exchange dials the address of a flow and copies datagrams in both directions until they cease.
func (s *Stack) exchange(inner *innerUDP, f flow.Flow, client netip.AddrPort) {
	defer inner.Close()
	conn, _, err := s.dial(s.ctx, f)
	if err != nil {
		s.unreachable(header.UDPProtocolNumber, client, f.To, 0, noNetwork)
		return
	}
	outer := outerUDP{conn.(*net.UDPConn)}
	o := &openFlow{flow: f, end: func() { outer.Close(); inner.Close() }}
	defer o.end()
	if !s.flows.add(o) {
		return
	}
	defer s.flows.remove(o)
	if s.admit(s.ctx, f) != nil { // the host has changed during the dial
		return
	}
	s.noteOpened(o)
	var answered atomic.Bool
	var both sync.WaitGroup
	both.Go(func() {
		copyDatagrams(outer, inner, &o.sent, &answered, false)
		o.end()
	})
	both.Go(func() {
		err := copyDatagrams(inner, outer, &o.received, &answered, true)
		if errors.Is(err, syscall.ECONNREFUSED) {
			s.unreachable(header.UDPProtocolNumber, client, f.To, 0, noPort)
		}
		o.end()
	})
	both.Wait()
	s.noteClosed(o)
}

// datagrams is a pool of buffers for a datagram of any size.
var datagrams = sync.Pool{New: func() any { return new([1 << 16]byte) }}

// copyDatagrams copies in one direction until no datagram has come for a while. answers says that this is the
// direction of the answers.
func copyDatagrams(
	to net.Conn, from datagramConn, count *atomic.Int64, answered *atomic.Bool, answers bool,
) error {
	for {
		wait := unansweredTime
		if answered.Load() {
			wait = answeredTime
		}
		if err := from.await(wait); err != nil {
			return err
		}
		_ = from.SetReadDeadline(time.Now().Add(wait))
		buffer := datagrams.Get().(*[1 << 16]byte)
		n, err := from.Read(buffer[:])
		if err == nil {
			if answers {
				answered.Store(true)
			}
			count.Add(int64(n))
			_, _ = to.Write(buffer[:n]) // a datagram may be lost
		}
		datagrams.Put(buffer)
		if err != nil {
			return err
		}
	}
}
