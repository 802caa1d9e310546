package stack

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/pipe"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	tcpipstack "gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"claudebox/checks/kit/must"
	"claudebox/internal/network/dns"
	"claudebox/internal/network/flow"
	"claudebox/internal/network/link"
	"claudebox/internal/network/policy"
)

const patience = 20 * time.Second

// outside is what a stack dials in a test: every address leads to a service on
// the loopback, and is written down once it has been judged.
type outside struct {
	tcp, udp net.Addr

	mu      sync.Mutex
	dialled []string
	refused []flow.Flow
	failed  []string
	names   map[string]netip.Addr

	opened, closed atomic.Int32 // as the journal is told
}

func (o *outside) dial(ctx context.Context, network, to string, judge func(netip.AddrPort) error) (conn net.Conn, addr netip.AddrPort, err error) {
	addr, err = netip.ParseAddrPort(to)
	if err != nil {
		host, _, _ := net.SplitHostPort(to)
		a, known := o.names[strings.TrimSuffix(host, ".")]
		if !known {
			return nil, addr, &net.DNSError{IsNotFound: true}
		}
		addr = netip.AddrPortFrom(a, 80)
	}
	if err := judge(addr); err != nil {
		return nil, addr, err
	}
	o.mu.Lock()
	o.dialled = append(o.dialled, network+" "+addr.String())
	o.mu.Unlock()
	if addr.Port() == closedPort {
		return nil, addr, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	at := o.tcp
	if network == "udp" {
		at = o.udp
	}
	conn, err = new(net.Dialer).DialContext(ctx, network, at.String())
	return conn, addr, err
}

const closedPort = 81

func (o *outside) Opened(flow.Flow)               { o.opened.Add(1) }
func (o *outside) Closed(flow.Flow, int64, int64) { o.closed.Add(1) }
func (o *outside) Failed(f flow.Flow, why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed = append(o.failed, f.To.String()+": "+why)
}

func (o *outside) Refused(f flow.Flow, _ string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refused = append(o.refused, f)
}

// newOutside serves an echo by TCP and UDP.
func newOutside(t testing.TB) *outside {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(c, c); c.Close() }()
		}
	}()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	must.Do(t, err)
	t.Cleanup(func() { c.Close() })
	go func() {
		buffer := make([]byte, 1<<16)
		for {
			n, from, err := c.ReadFrom(buffer)
			if err != nil {
				return
			}
			c.WriteTo(buffer[:n], from)
		}
	}()
	return &outside{tcp: l.Addr(), udp: c.LocalAddr(), names: map[string]netip.Addr{}}
}

// newStack makes a stack whose outside is a test's.
func newStack(t testing.TB, o *outside, rules policy.Rules, answerer flow.Answerer) *Stack {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	if answerer != nil {
		rules.Answers = answerer.Answers
	}
	s, err := New(ctx, Config{
		Rules: rules, Journal: o, Answerer: answerer,
		DNS: &dns.Server{
			Knows: rules.Knows, Only: rules.Tier == policy.TierAllow, Names: dns.NewNames(),
			Unknown: func(string, bool) {}, Resolvers: func() []netip.AddrPort { return nil },
		},
	})
	must.Do(t, err)
	s.dialOut = o.dial
	s.pingOut = func(to netip.Addr, _ []byte) []byte {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.dialled = append(o.dialled, "icmp "+to.String())
		return nil
	}
	return s
}

// sandbox is a stack in the place of a sandbox's kernel.
type sandbox struct{ *tcpipstack.Stack }

func newSandbox(t testing.TB, s *Stack) sandbox {
	t.Helper()
	ours, theirs := pipe.New("", "", link.MTU)
	must.Do(t, s.attach(ours))
	inside := tcpipstack.New(tcpipstack.Options{
		NetworkProtocols:   []tcpipstack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []tcpipstack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
	})
	t.Cleanup(func() { inside.Destroy(); s.gvisor.Destroy() })
	if err := inside.CreateNIC(nic, theirs); err != nil {
		t.Fatal(err)
	}
	inside.AddProtocolAddress(nic, tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: address(link.Sandbox4).WithPrefix()}, tcpipstack.AddressProperties{})
	inside.AddProtocolAddress(nic, tcpip.ProtocolAddress{Protocol: ipv6.ProtocolNumber, AddressWithPrefix: address(link.Sandbox6).WithPrefix()}, tcpipstack.AddressProperties{})
	inside.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}, {Destination: header.IPv6EmptySubnet, NIC: nic}})
	return sandbox{inside}
}

func full(to string) (tcpip.FullAddress, tcpip.NetworkProtocolNumber) {
	a := netip.MustParseAddrPort(to)
	return tcpip.FullAddress{NIC: nic, Addr: address(a.Addr()), Port: a.Port()}, protocolOf(a.Addr())
}

func (b sandbox) dial(t testing.TB, to string) (*gonet.TCPConn, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	at, protocol := full(to)
	return gonet.DialContextTCP(ctx, b.Stack, at, protocol)
}

func (b sandbox) mustDial(t testing.TB, to string) *gonet.TCPConn {
	t.Helper()
	c, err := b.dial(t, to)
	if err != nil {
		t.Fatalf("dial %s: %v", to, err)
	}
	c.SetDeadline(time.Now().Add(patience))
	return c
}

var inet = policy.Rules{Tier: policy.TierInet}

func TestAConnectionIsCarriedBothWaysToItsEnd(t *testing.T) {
	o := newOutside(t)
	b := newSandbox(t, newStack(t, o, inet, nil))
	for _, to := range []string{"203.0.113.10:80", "[2001:db8:ffff::10]:80"} {
		c := b.mustDial(t, to)
		want := strings.Repeat("there and back ", 200_000)
		go func() {
			io.WriteString(c, want)
			c.CloseWrite()
		}()
		got, err := io.ReadAll(c)
		if err != nil || string(got) != want {
			t.Errorf("%s: %d bytes of %d came back, %v", to, len(got), len(want), err)
		}
		c.Close()
	}
}

func TestWhatIsRefusedIsRefusedAtOnceAndNeverDialled(t *testing.T) {
	o := newOutside(t)
	b := newSandbox(t, newStack(t, o, inet, nil))
	for _, to := range []string{"192.168.77.2:80", "169.254.169.254:80", "[fd00::5]:80", "169.254.1.1:80", "[fd00:cb::53]:22", "198.18.0.9:80"} {
		if c, err := b.dial(t, to); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %v, %v", to, c, err)
		}
	}
	if _, err := b.dial(t, "203.0.113.10:81"); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a closed port outside: %v", err)
	}
	if len(o.dialled) != 1 {
		t.Errorf("dialled: %q", o.dialled)
	}
}

func TestDatagramsAreCarried(t *testing.T) {
	o := newOutside(t)
	b := newSandbox(t, newStack(t, o, inet, nil))
	at, protocol := full("203.0.113.10:7")
	c, err := gonet.DialUDP(b.Stack, nil, &at, protocol)
	must.Do(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	want := strings.Repeat("x", 9000)
	io.WriteString(c, want)
	got := make([]byte, 10_000)
	if n, err := c.Read(got); err != nil || string(got[:n]) != want {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func TestADatagramThatIsRefusedIsAnsweredAtOnce(t *testing.T) {
	b := newSandbox(t, newStack(t, newOutside(t), inet, nil))
	at, protocol := full("192.168.77.2:53")
	c, err := gonet.DialUDP(b.Stack, nil, &at, protocol)
	must.Do(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	io.WriteString(c, "hello")
	if _, err := c.Read(make([]byte, 10)); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v", err)
	}
}

// What the machine comes to be connected to.
func TestOpenConnectionsAreEnded(t *testing.T) {
	o := newOutside(t)
	s := newStack(t, o, inet, nil)
	b := newSandbox(t, s)
	c := b.mustDial(t, "203.0.113.10:80")
	io.WriteString(c, "x")
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	s.SetHost(policy.Host{Networks: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}})
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("read: %v", err)
	}
	for s.flows.count() > 0 {
		runtime.Gosched()
	}
}

// While a connection is being dialled the machine may come to where it leads.
func TestWhatIsBeingDialledIsJudgedAgain(t *testing.T) {
	arrive := func(s *Stack) {
		s.SetHost(policy.Host{Networks: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}})
	}
	e, err := policy.ParseEntry("good.test", false)
	must.Do(t, err)
	allow := policy.Rules{Tier: policy.TierAllow, Allow: []policy.Entry{e}}
	for _, tc := range []struct {
		name, to string
		rules    policy.Rules
	}{
		{"an address", "203.0.113.10:80", inet},
		{"a name", "", allow},
		{"a name that is answered for", "", inet},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := newOutside(t)
			o.names["good.test"], o.names["api.test"] = netip.MustParseAddr("203.0.113.10"), netip.MustParseAddr("203.0.113.20")
			s := newStack(t, o, tc.rules, answering{})
			b := newSandbox(t, s)
			if name := map[string]string{policy.TierAllow: "good.test:80", policy.TierInet: "api.test:443"}[tc.rules.Tier]; tc.to == "" {
				host, port, _ := net.SplitHostPort(name)
				a, _, _ := s.DNS.Names.Addresses(host)
				tc.to = net.JoinHostPort(a.String(), port)
			}
			s.dialOut = func(ctx context.Context, network, to string, judge func(netip.AddrPort) error) (net.Conn, netip.AddrPort, error) {
				conn, addr, err := o.dial(ctx, network, to, judge)
				arrive(s)
				return conn, addr, err
			}
			c, err := b.dial(t, tc.to)
			if err != nil {
				return
			}
			c.SetDeadline(time.Now().Add(patience))
			io.WriteString(c, "GET / HTTP/1.1\r\nHost: good.test\r\n\r\n")
			got := make([]byte, 64)
			if n, _ := c.Read(got); n > 0 && string(got[:n]) != "no way to api.test" {
				t.Errorf("%q came back from this machine's own network", got[:n])
			}
		})
	}
}

// While it is not known which NAT64 the network has, any IPv6 address may be one of
// the LAN. A dial waits for a moment; names have IPv4.
func TestIPv6IsClosedUntilItIsKnownWhatIsBehindIt(t *testing.T) {
	o := newOutside(t)
	s := newStack(t, o, inet, nil)
	b := newSandbox(t, s)
	c := b.mustDial(t, "[2001:db8:ffff::10]:80")
	exchange := func() error {
		io.WriteString(c, "x")
		_, err := c.Read(make([]byte, 1))
		return err
	}
	must.Do(t, exchange()) // it is judged once more after it is accepted
	s.SetHost(policy.Host{Unsure: true})
	b.mustDial(t, "203.0.113.10:80")
	time.AfterFunc(50*time.Millisecond, func() { s.SetHost(policy.Host{}) })
	b.mustDial(t, "[2001:db8:ffff::10]:80")
	s.SetHost(policy.Host{Unsure: true})
	s.mu.Lock()
	s.waitEnd = time.Now()
	s.mu.Unlock()
	if _, err := b.dial(t, "[2001:db8:ffff::10]:80"); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("while it is not known: %v", err)
	}
	if err := exchange(); err != nil {
		t.Errorf("a connection of before: %v", err)
	}
}

func TestADatagramIsJudgedAgainWhenItIsDialled(t *testing.T) {
	o := newOutside(t)
	s := newStack(t, o, inet, nil)
	b := newSandbox(t, s)
	s.dialOut = func(ctx context.Context, network, to string, judge func(netip.AddrPort) error) (net.Conn, netip.AddrPort, error) {
		conn, addr, err := o.dial(ctx, network, to, judge)
		s.SetHost(policy.Host{Networks: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}})
		return conn, addr, err
	}
	at, protocol := full("203.0.113.10:7")
	c, err := gonet.DialUDP(b.Stack, nil, &at, protocol)
	must.Do(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Second))
	io.WriteString(c, "hello")
	if n, err := c.Read(make([]byte, 10)); err == nil {
		t.Errorf("%d bytes came back from this machine's own network", n)
	}
}

// A dial may take minutes: one that has come to lead home ends at once.
func TestAPendingDialEndsWithTheMove(t *testing.T) {
	o := newOutside(t)
	s := newStack(t, o, inet, nil)
	b := newSandbox(t, s)
	begun, ended := make(chan struct{}), make(chan struct{})
	s.dialOut = func(ctx context.Context, _, _ string, _ func(netip.AddrPort) error) (net.Conn, netip.AddrPort, error) {
		close(begun)
		<-ctx.Done()
		close(ended)
		return nil, netip.AddrPort{}, ctx.Err()
	}
	go b.dial(t, "203.0.113.10:80")
	<-begun
	s.SetHost(policy.Host{Networks: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}})
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("it goes on")
	}
}

// A connection is one to all bounds, from its dial to its end, and refused once.
func TestAConnectionCountsOnce(t *testing.T) {
	o := newOutside(t)
	s := newStack(t, o, inet, nil)
	b := newSandbox(t, s)
	c := b.mustDial(t, "203.0.113.10:80")
	io.WriteString(c, "x")
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if n := s.flows.count(); n != 1 {
		t.Errorf("it counts as %d", n)
	}
	s.SetHost(policy.Host{Networks: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}})
	for s.flows.count() > 0 {
		runtime.Gosched()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.refused) != 1 {
		t.Errorf("refused: %v", o.refused)
	}
}

// What stays inside or was let in is no affair of the policy's.
func TestAMoveLeavesAloneWhatIsNotDialled(t *testing.T) {
	o := newOutside(t)
	s := newStack(t, o, inet, nil)
	b := newSandbox(t, s)
	c := b.mustDial(t, "169.254.1.1:53")
	for s.flows.count() == 0 {
		runtime.Gosched()
	}
	s.SetHost(policy.Host{})
	c.SetDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := c.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("DNS over TCP: %v", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.refused) > 0 {
		t.Errorf("refused: %v", o.refused)
	}
}

// answering answers in the place of a host.
type answering struct{}

func (answering) Answers(name string, port uint16) bool {
	return name == "api.test" && (port == 443 || port == 0)
}

func (answering) Serve(ctx context.Context, client net.Conn, name string, _ uint16, dial func(context.Context) (net.Conn, error)) {
	defer client.Close()
	up, err := dial(ctx)
	if err != nil {
		io.WriteString(client, "no way to "+name)
		return
	}
	up.Close()
	io.WriteString(client, "in the place of "+name)
}

// relaying has a host outside say everything that it answers in its place.
type relaying struct{ answering }

func (relaying) Serve(ctx context.Context, client net.Conn, _ string, _ uint16, dial func(context.Context) (net.Conn, error)) {
	defer client.Close()
	up, err := dial(ctx)
	if err != nil {
		return
	}
	defer up.Close()
	go io.Copy(up, client)
	io.Copy(client, up)
}

// A host that is answered for may come to lie at home, too.
func TestTheWayToAHostThatIsAnsweredForEndsWithTheMove(t *testing.T) {
	o := newOutside(t)
	o.names["api.test"] = netip.MustParseAddr("203.0.113.20")
	s := newStack(t, o, inet, relaying{})
	b := newSandbox(t, s)
	v4, _, _ := s.DNS.Names.Addresses("api.test")
	c := b.mustDial(t, netip.AddrPortFrom(v4, 443).String())
	echo := func() error {
		io.WriteString(c, "x")
		_, err := c.Read(make([]byte, 1))
		return err
	}
	must.Do(t, echo())
	s.SetHost(policy.Host{})
	if err := echo(); err != nil {
		t.Errorf("a move to elsewhere: %v", err)
	}
	s.SetHost(policy.Host{Networks: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}})
	if echo() == nil {
		t.Fatal("it goes on")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.refused) != 1 || o.refused[0].To.Addr() != o.names["api.test"] {
		t.Errorf("refused: %v", o.refused)
	}
	for s.answererDials.count() > 0 {
		runtime.Gosched()
	}
}

func TestAHostIsAnsweredFor(t *testing.T) {
	o := newOutside(t)
	o.names["api.test"] = netip.MustParseAddr("203.0.113.20")
	s := newStack(t, o, inet, answering{})
	b := newSandbox(t, s)
	v4, _, _ := s.DNS.Names.Addresses("api.test")
	for _, want := range []string{"in the place of api.test", "no way to api.test"} {
		c := b.mustDial(t, netip.AddrPortFrom(v4, 443).String())
		if got, err := io.ReadAll(c); err != nil || string(got) != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
		o.names["api.test"] = netip.MustParseAddr("192.168.77.2") // the name leads home now
	}
}

func TestNamesOfAListAndNothingElse(t *testing.T) {
	o := newOutside(t)
	o.names["good.test"], o.names["rebind.test"] = netip.MustParseAddr("203.0.113.10"), netip.MustParseAddr("10.1.2.3")
	var rules policy.Rules
	rules.Tier = policy.TierAllow
	for _, name := range []string{"good.test", "rebind.test"} {
		e, err := policy.ParseEntry(name, false)
		must.Do(t, err)
		rules.Allow = append(rules.Allow, e)
	}
	s := newStack(t, o, rules, nil)
	b := newSandbox(t, s)
	good, good6, _ := s.DNS.Names.Addresses("good.test")
	rebind, _, _ := s.DNS.Names.Addresses("rebind.test")
	for _, a := range []netip.Addr{good, good6} {
		c := b.mustDial(t, netip.AddrPortFrom(a, 80).String())
		const request = "GET / HTTP/1.1\r\nHost: good.test\r\n\r\n"
		io.WriteString(c, request)
		got := make([]byte, len(request))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != request {
			t.Errorf("%q, %v", got, err)
		}
		io.WriteString(c, strings.ReplaceAll(request, "good", "evil"))
		if n, err := c.Read(got); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("after a request for another host: %q, %v", got[:n], err)
		}
	}
	for _, to := range []string{netip.AddrPortFrom(rebind, 80).String(), netip.AddrPortFrom(good, 22).String(), "203.0.113.10:80", "198.18.5.5:80"} {
		if _, err := b.dial(t, to); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %v", to, err)
		}
	}
}

// What the journal has begun has an end in it when the session ends, whatever
// state the connection is in, and nothing begins there afterwards.
func TestWhatHasBegunHasAnEnd(t *testing.T) {
	o := newOutside(t)
	o.names["good.test"] = netip.MustParseAddr("203.0.113.10")
	e, err := policy.ParseEntry("good.test", false)
	must.Do(t, err)
	s := newStack(t, o, policy.Rules{Tier: policy.TierAllow, Allow: []policy.Entry{e}}, nil)
	dialled, held := make(chan struct{}), make(chan struct{})
	s.dialOut = func(ctx context.Context, network, to string, judge func(netip.AddrPort) error) (net.Conn, netip.AddrPort, error) {
		conn, addr, err := o.dial(ctx, network, to, judge)
		if strings.HasSuffix(to, ":80") { // it answers after the session
			close(dialled)
			<-held
		}
		return conn, addr, err
	}
	b := newSandbox(t, s)
	a, _, _ := s.DNS.Names.Addresses("good.test")
	for _, hello := range []string{"", "\x16\x03\x01\x00", "\x16\x03\x01\x00\x05\x01\x00\x00\x80\x00"} {
		io.WriteString(b.mustDial(t, netip.AddrPortFrom(a, 443).String()), hello)
	}
	go b.dial(t, netip.AddrPortFrom(a, 80).String())
	<-dialled
	shaking := &openFlow{} // between its SYN and the sandbox's answer
	s.noteOpened(shaking)
	s.Finish()
	if opened, closed := o.opened.Load(), o.closed.Load(); opened != 4 || closed != 4 {
		t.Errorf("%d opened, %d closed; want 4 of each", opened, closed)
	}
	close(held)
	s.noteClosed(shaking)
	for range 20 {
		time.Sleep(5 * time.Millisecond)
		if opened, closed := o.opened.Load(), o.closed.Load(); opened != 4 || closed != 4 {
			t.Fatalf("after the end: %d opened, %d closed", opened, closed)
		}
	}
}

func TestAThousandConnectionsLeaveNothing(t *testing.T) {
	s := newStack(t, newOutside(t), inet, nil)
	b := newSandbox(t, s)
	b.mustDial(t, "203.0.113.10:80").Close()
	for s.flows.count() > 0 {
		runtime.Gosched()
	}
	before := runtime.NumGoroutine()
	var all []*gonet.TCPConn
	for i := range 1000 {
		c := b.mustDial(t, "203.0.113.10:80")
		if i%5 == 0 {
			io.WriteString(c, "x")
		}
		all = append(all, c)
	}
	for _, c := range all {
		c.Close()
	}
	for end := time.Now().Add(patience); s.flows.count() > 0 || runtime.NumGoroutine() > before+20; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d flows and %d goroutines are left; there were %d", s.flows.count(), runtime.NumGoroutine(), before)
		}
	}
}

// heldMemory is how many bytes the heap holds that are in use.
func heldMemory() int64 {
	runtime.GC()
	runtime.GC() // what a pool has kept over the first goes with the second
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc)
}

// A thousand silent exchanges of large datagrams would hold 128 MB of buffers.
func TestAThousandExchangesHoldNoBuffers(t *testing.T) {
	o := newOutside(t)
	b := newSandbox(t, newStack(t, o, inet, nil))
	to, protocol := full("203.0.113.10:443")
	answer, before := make([]byte, 1<<16), heldMemory()
	for i := range 1000 {
		c, err := gonet.DialUDP(b.Stack, nil, &to, protocol)
		if err != nil {
			t.Fatal(i, err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		if _, err := c.Write(answer[:30_000]); err != nil {
			t.Fatal(i, err)
		}
		if n, err := c.Read(answer); n != 30_000 {
			t.Fatal(i, n, err)
		}
	}
	// About 50 MiB are held with the race detector, beside what the tests before have left.
	if held := heldMemory() - before; held > 76<<20 {
		t.Errorf("%d MiB are held", held>>20)
	}
}
