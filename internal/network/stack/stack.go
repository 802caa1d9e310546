package stack

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	tcpipstack "gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"claudebox/internal/network/dns"
	"claudebox/internal/network/flow"
	"claudebox/internal/network/link"
	"claudebox/internal/network/policy"
	"claudebox/internal/network/upstream"
)

// Config is what a stack works by.
type Config struct {
	Rules      policy.Rules
	Host       policy.Host // at the beginning, see [Stack.Moved]
	DNS        *dns.Server // nil: there is none
	Terminator flow.Terminator
	Journal    Journal
	// Resolver looks up the names of flows that have one.
	Resolver *net.Resolver
	// Via connects to them, where there is one, and looks them up itself.
	Via upstream.Proxy
}

// Journal is told what became of flows. It is called from many goroutines.
type Journal interface {
	Opened(flow.Flow)
	Closed(f flow.Flow, sent, received int64)
	Refused(f flow.Flow, why string)
}

// Bounds of what a sandbox can have at a time.
const (
	mostTCP   = 2048
	mostUDP   = 1024
	mostPings = 32
)

// Stack serves one sandbox.
type Stack struct {
	Config
	ctx   context.Context
	inner *tcpipstack.Stack
	flows flows
	// upstreams are the connections to hosts that are answered for. Those with the
	// sandbox are among flows.
	upstreams flows
	noted     noted
	syns      syns
	udps      chan struct{}
	pings     chan struct{}
	// dialOut is [Stack.dialHost], pingOut is [ping], or what a test has in their
	// places.
	dialOut dialFunc
	pingOut func(to netip.Addr, message []byte) []byte

	mu    sync.RWMutex
	host  policy.Host
	moved chan struct{} // closed when there is another host
	until time.Time     // bounds the wait for one that is not [policy.Host.Unsure]
}

// sureTime is how long after a move a dial waits until the host is known well.
const sureTime = 3 * time.Second

// nic is the number of the only interface.
const nic = 1

// New makes a stack that has no interface yet. Its connections end with ctx.
func New(ctx context.Context, c Config) (*Stack, error) {
	s := &Stack{
		Config: c, ctx: ctx, host: c.Host,
		flows: newFlows(), upstreams: newFlows(), noted: noted{list: map[*open]struct{}{}},
		udps: make(chan struct{}, mostUDP), pings: make(chan struct{}, mostPings),
		moved: make(chan struct{}), until: time.Now().Add(sureTime),
	}
	s.dialOut, s.pingOut = s.dialHost, ping
	s.inner = tcpipstack.New(tcpipstack.Options{
		NetworkProtocols: []tcpipstack.NetworkProtocolFactory{
			// A server that listens on 127.0.0.1 answers by that address.
			ipv4.NewProtocolWithOptions(ipv4.Options{AllowExternalLoopbackTraffic: true}), ipv6.NewProtocol,
		},
		TransportProtocols: []tcpipstack.TransportProtocolFactory{
			tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4,
			icmp.NewProtocol6,
		},
	})
	if err := s.tune(); err != nil {
		return nil, err
	}
	forwarder := tcp.NewForwarder(s.inner, firstWindow, mostDialling, s.acceptTCP)
	s.inner.SetTransportProtocolHandler(tcp.ProtocolNumber,
		func(id tcpipstack.TransportEndpointID, p *tcpipstack.PacketBuffer) bool {
			return s.noteSYN(id, p) || forwarder.HandlePacket(id, p)
		})
	s.inner.SetTransportProtocolHandler(udp.ProtocolNumber, udp.NewForwarder(s.inner, s.acceptUDP).HandlePacket)
	s.inner.SetTransportProtocolHandler(icmp.ProtocolNumber4, s.acceptICMP)
	return s, nil
}

// tune sets what differs from the library's defaults. Measured: moderation of the
// buffers gains nothing over a link without loss.
func (s *Stack) tune() error {
	moderate, sack := tcpip.TCPModerateReceiveBufferOption(false), tcpip.TCPSACKEnabled(true)
	// A SYN for a connection in TIME_WAIT is dropped: nobody listens here.
	wait := tcpip.TCPTimeWaitTimeoutOption(10 * time.Millisecond)
	for _, option := range []tcpip.SettableTransportProtocolOption{
		&tcpip.TCPReceiveBufferSizeRangeOption{Min: 4 << 10, Default: firstWindow, Max: largestBuffer},
		&tcpip.TCPSendBufferSizeRangeOption{Min: 4 << 10, Default: firstWindow, Max: largestBuffer},
		&moderate, &sack, &wait,
	} {
		if err := s.inner.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			return fmt.Errorf("set up TCP: %s", err)
		}
	}
	return nil
}

// now is what the machine is connected to at this moment.
func (s *Stack) now() policy.Host {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.host
}

// Moved says that the machine is connected to something else now. What is open
// is judged anew, and ended where it is refused.
func (s *Stack) Moved(h policy.Host) {
	s.mu.Lock()
	if h.Unsure && !s.host.Unsure {
		s.until = time.Now().Add(sureTime)
	}
	s.host = h
	close(s.moved)
	s.moved = make(chan struct{})
	s.mu.Unlock()
	for _, o := range append(s.flows.all(), s.upstreams.all()...) {
		if o.flow == (flow.Flow{}) {
			continue
		}
		if v := policy.Judge(s.Rules, h, o.flow); v.Action == flow.Refuse {
			s.Journal.Refused(o.flow, v.Why)
			o.end()
		}
	}
}

// judge decides about a flow, and notes a refusal.
func (s *Stack) judge(f flow.Flow) flow.Verdict {
	v := policy.Judge(s.Rules, s.now(), f)
	if v.Action == flow.Refuse {
		s.Journal.Refused(f, v.Why)
	}
	return v
}

// admit judges a flow by the address that it leads to, when it is known what is
// behind that. [errRefused] has been noted.
func (s *Stack) admit(ctx context.Context, f flow.Flow) error {
	for {
		s.mu.RLock()
		host, moved, wait := s.host, s.moved, time.Until(s.until)
		s.mu.RUnlock()
		if !host.MayTranslate(f.To.Addr()) {
			break
		}
		if wait <= 0 {
			s.Journal.Refused(f, "it may lead home: the resolvers do not say which NAT64 this network has")
			return errRefused
		}
		select {
		case <-moved:
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if s.judge(f).Action == flow.Refuse {
		return errRefused
	}
	return nil
}

// flowOf is a flow to an address as the sandbox sees it: of one that stands for
// a name only the name counts. It is false for one that stands for a name that
// nobody has asked for.
func (s *Stack) flowOf(p flow.Proto, to netip.AddrPort) (flow.Flow, bool) {
	if s.DNS == nil || !dns.Stands(to.Addr()) {
		return flow.Flow{Proto: p, To: to}, true
	}
	name := s.DNS.Names.Name(to.Addr())
	return flow.Flow{Proto: p, To: netip.AddrPortFrom(netip.Addr{}, to.Port()), Name: name}, name != ""
}

// isServer reports whether an address is the stack's own inside.
func isServer(a netip.Addr) bool { return a == link.Server4 || a == link.Server6 }

func addrPort(a tcpip.Address, port uint16) netip.AddrPort {
	addr, _ := netip.AddrFromSlice(a.AsSlice())
	return netip.AddrPortFrom(addr, port)
}

func address(a netip.Addr) tcpip.Address { return tcpip.AddrFromSlice(a.AsSlice()) }

func protocolOf(a netip.Addr) tcpip.NetworkProtocolNumber {
	if a.Is4() {
		return header.IPv4ProtocolNumber
	}
	return header.IPv6ProtocolNumber
}
