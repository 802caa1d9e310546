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

// Config describes what a stack serves.
type Config struct {
	Rules     policy.Rules  // at first, see [Stack.SetRules]
	FirstHost policy.Host   // until [Stack.SetHost] is called
	DNS       *dns.Server   // nil: the sandbox has none
	Answerer  flow.Answerer // nil: it answers no connections
	Journal   Journal
	Resolver  *net.Resolver  // resolves the names of flows, if there is no Via
	Via       upstream.Proxy // the proxy that flows with a name are dialled through, unresolved; zero: there is none
}

// Journal records flows. Its methods are called from many goroutines.
type Journal interface {
	Opened(flow.Flow)
	Closed(f flow.Flow, sent, received int64)
	Refused(f flow.Flow, why string)
	Failed(f flow.Flow, why string) // it was allowed, and its host could not be connected to
}

// Bounds of what a sandbox can have at the same time: connections, exchanges of datagrams, echo requests.
const (
	mostTCP   = 2048
	mostUDP   = 1024
	mostPings = 32
)

// Stack serves one sandbox.
type Stack struct {
	Config
	ctx    context.Context
	gvisor *tcpipstack.Stack
	flows  flows
	// answererDials are the answerer's connections to hosts. The sandbox's connections to it are among flows.
	answererDials flows
	journalled    journalled
	syns          syns
	udps          chan struct{} // has an element for each exchange of datagrams
	pings         chan struct{} // has an element for each echo request
	// Tests replace these two functions.
	dialOut dialFunc
	pingOut func(to netip.Addr, message []byte) []byte

	mu      sync.RWMutex
	host    policy.Host
	moved   chan struct{} // closed when host changes
	waitEnd time.Time     // see [longestWait]
}

// longestWait is how long dials that [policy.Host.MayTranslate] doubts wait for [Stack.SetHost], from when this
// machine's state became [policy.Host.Unsure]. After that they are refused.
const longestWait = 3 * time.Second

// nic is the number of the only interface.
const nic = 1

// New makes a stack without an interface, see [Stack.Attach]. Its connections end with ctx.
func New(ctx context.Context, c Config) (*Stack, error) {
	s := &Stack{
		Config: c, ctx: ctx, host: c.FirstHost,
		flows: newFlows(), answererDials: newFlows(), journalled: journalled{list: map[*openFlow]struct{}{}},
		udps: make(chan struct{}, mostUDP), pings: make(chan struct{}, mostPings),
		moved: make(chan struct{}), waitEnd: time.Now().Add(longestWait),
	}
	s.dialOut, s.pingOut = s.dialHost, ping
	s.gvisor = tcpipstack.New(tcpipstack.Options{
		NetworkProtocols: []tcpipstack.NetworkProtocolFactory{
			// Published ports are dialled at the sandbox's 127.0.0.1, and answers come from there.
			ipv4.NewProtocolWithOptions(ipv4.Options{AllowExternalLoopbackTraffic: true}), ipv6.NewProtocol,
		},
		TransportProtocols: []tcpipstack.TransportProtocolFactory{
			tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4,
			icmp.NewProtocol6,
		},
	})
	// Short, as the library drops a new SYN for a connection in TIME_WAIT if there is no listener.
	wait := tcpip.TCPTimeWaitTimeoutOption(10 * time.Millisecond)
	if err := s.gvisor.SetTransportProtocolOption(tcp.ProtocolNumber, &wait); err != nil {
		return nil, fmt.Errorf("set up TCP: %s", err)
	}
	forwarder := tcp.NewForwarder(s.gvisor, largestBuffer, mostDialling, s.acceptTCP)
	s.gvisor.SetTransportProtocolHandler(tcp.ProtocolNumber,
		func(id tcpipstack.TransportEndpointID, p *tcpipstack.PacketBuffer) bool {
			return s.checkSYN(id, p) || forwarder.HandlePacket(id, p) // an invalid SYN is dropped
		})
	s.gvisor.SetTransportProtocolHandler(udp.ProtocolNumber, udp.NewForwarder(s.gvisor, s.acceptUDP).HandlePacket)
	s.gvisor.SetTransportProtocolHandler(icmp.ProtocolNumber4, s.acceptICMP)
	return s, nil
}

// current returns the rules, and what this machine is connected to, at present.
func (s *Stack) current() (policy.Rules, policy.Host) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.Rules, s.host
}

// Knows is [policy.Rules.Knows] by the rules at present.
func (s *Stack) Knows(name string) bool {
	rules, _ := s.current()
	return rules.Knows(name)
}

// SetRules changes the rules to those that allow no less. Flows that are open stay so.
func (s *Stack) SetRules(r policy.Rules) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Rules = r
}

// SetHost changes what this machine is connected to. Open flows are judged again, and ended if they are
// refused.
func (s *Stack) SetHost(h policy.Host) {
	s.mu.Lock()
	if h.Unsure && !s.host.Unsure {
		s.waitEnd = time.Now().Add(longestWait)
	}
	s.host = h
	close(s.moved)
	s.moved = make(chan struct{})
	rules := s.Rules
	s.mu.Unlock()
	for _, o := range append(s.flows.all(), s.answererDials.all()...) {
		if o.flow == (flow.Flow{}) {
			continue
		}
		if v := policy.Judge(rules, h, o.flow); v.Action == flow.Refuse {
			s.Journal.Refused(o.flow, v.Why)
			o.end()
		}
	}
}

// judge decides about a flow, and tells the journal of a refusal.
func (s *Stack) judge(f flow.Flow) flow.Verdict {
	rules, host := s.current()
	v := policy.Judge(rules, host, f)
	if v.Action == flow.Refuse {
		s.Journal.Refused(f, v.Why)
	}
	return v
}

// admit judges a flow whose address is known. An IPv6 address may contain an IPv4 address, behind a NAT64 prefix that
// is not known yet: then admit first waits, at most [longestWait]. It returns ctx's error, or [errRefused] after it has
// told the journal.
func (s *Stack) admit(ctx context.Context, f flow.Flow) error {
	for {
		s.mu.RLock()
		host, moved, wait := s.host, s.moved, time.Until(s.waitEnd)
		s.mu.RUnlock()
		if !host.MayTranslate(f.To.Addr()) {
			break
		}
		if wait <= 0 {
			const why = "it may lead into your own network: the resolvers do not say which NAT64 prefix that has"
			s.Journal.Refused(f, why)
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

// flowOf returns the flow to an address that the sandbox uses. If the address stands for a name, the flow has
// the name and no address. It returns false if the address stands for a name that the sandbox has not
// looked up.
func (s *Stack) flowOf(p flow.Proto, to netip.AddrPort) (flow.Flow, bool) {
	if s.DNS == nil || !dns.StandsForName(to.Addr()) {
		return flow.Flow{Proto: p, To: to}, true
	}
	name := s.DNS.Names.Name(to.Addr())
	return flow.Flow{Proto: p, To: netip.AddrPortFrom(netip.Addr{}, to.Port()), Name: name}, name != ""
}

// isServer reports whether an address inside is that of the stack itself.
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
