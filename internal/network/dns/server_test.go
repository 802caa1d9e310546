package dns

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"claudebox/checks/kit/must"
)

// resolver is one on the loopback that answers every question with the same
// addresses, and remembers what it was asked.
type resolver struct {
	at    netip.AddrPort
	mu    sync.Mutex
	asked [][]byte
}

func newResolver(t *testing.T, at string) *resolver {
	t.Helper()
	conn, listener := listen(t, at)
	r := &resolver{at: conn.LocalAddr().(*net.UDPAddr).AddrPort()}
	go func() {
		buffer := make([]byte, longest)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			conn.WriteTo([]byte("noise"), from)
			conn.WriteTo(r.answer(buffer[:n]), from)
		}
	}()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			query, _ := readMessage(c, longest)
			writeMessage(c, r.answer(query))
			c.Close()
		}
	}()
	return r
}

// listen listens at one port by UDP and TCP. Of port 0 the kernel chooses one that is free for UDP: for TCP another
// program may have it.
func listen(t *testing.T, at string) (net.PacketConn, net.Listener) {
	t.Helper()
	const most = 50
	for n := 1; ; n++ {
		conn, err := net.ListenPacket("udp", at)
		if err != nil {
			t.Skip("no such loopback: ", err)
		}
		listener, err := net.Listen("tcp", conn.LocalAddr().String())
		if err == nil {
			t.Cleanup(func() { conn.Close(); listener.Close() })
			return conn, listener
		}
		conn.Close()
		if !errors.Is(err, syscall.EADDRINUSE) || n == most {
			t.Fatal(err)
		}
	}
}

// answer changes the case of the name, as some resolvers do: clients accept that.
func (r *resolver) answer(query []byte) []byte {
	r.mu.Lock()
	r.asked = append(r.asked, slices.Clone(query))
	r.mu.Unlock()
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil
	}
	m.Response, m.Additionals = true, nil
	m.Questions[0].Name = dnsmessage.MustNewName(strings.ToLower(m.Questions[0].Name.String()))
	switch m.Questions[0].Name.String() {
	case "ipv4only.arpa.":
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Type: dnsmessage.TypeAAAA, Class: dnsmessage.ClassINET},
			Body:   &dnsmessage.AAAAResource{AAAA: netip.MustParseAddr("2001:db8:64::c000:aa").As16()},
		}}
		packed, _ := m.Pack()
		return packed
	case "broken.arpa.":
		m.RCode = dnsmessage.RCodeServerFailure
		packed, _ := m.Pack()
		return packed
	}
	count := 1
	if strings.HasPrefix(m.Questions[0].Name.String(), "big.") {
		count = 60
	}
	for i := range count {
		m.Answers = append(m.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET},
			Body:   &dnsmessage.AResource{A: [4]byte{203, 0, 113, byte(i)}},
		})
	}
	packed, err := m.Pack()
	if err != nil {
		return nil
	}
	return packed
}

func query(t *testing.T, name string, kind dnsmessage.Type, change func(*dnsmessage.Message)) []byte {
	t.Helper()
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	if change != nil {
		change(&m)
	}
	packed, err := m.Pack()
	must.Do(t, err)
	return packed
}

func server(resolvers ...netip.AddrPort) *Server {
	return &Server{
		Knows: func(name string) bool { return name == "known.test" }, Names: NewNames(), Unknown: func(string, bool) {},
		Resolvers: func() []netip.AddrPort { return resolvers },
	}
}

func parsed(t *testing.T, message []byte) dnsmessage.Message {
	t.Helper()
	var m dnsmessage.Message
	if err := m.Unpack(message); err != nil {
		t.Fatalf("%x: %v", message, err)
	}
	return m
}

func TestQuestionsGoToTheResolverOfEitherFamily(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		for _, tcp := range []bool{false, true} {
			r := newResolver(t, at)
			m := parsed(t, server(r.at).Answer(t.Context(), query(t, "Host.Test.", dnsmessage.TypeA, nil), tcp))
			if m.ID != 7 || len(m.Answers) != 1 || m.Questions[0].Name.String() != "host.test." {
				t.Errorf("%s, TCP %v: got %+v", at, tcp, m)
			}
		}
	}
}

func TestTheNextResolverIsAskedWhenOneIsNotThere(t *testing.T) {
	r := newResolver(t, "127.0.0.1:0")
	m := parsed(t, server(netip.MustParseAddrPort("127.0.0.1:1"), r.at).Answer(t.Context(), query(t, "host.test.", dnsmessage.TypeA, nil), false))
	if len(m.Answers) != 1 {
		t.Errorf("got %+v", m)
	}
}

// A resolver that does not answer takes no time from the others, and a failure is
// no answer.
func TestAddressesAreThoseOfAllResolvers(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	must.Do(t, err)
	defer silent.Close()
	dead := silent.LocalAddr().(*net.UDPAddr).AddrPort()
	ctx, cancel := context.WithTimeout(t.Context(), firstWait)
	defer cancel()
	good := newResolver(t, "127.0.0.1:0")
	if list, err := server(dead, good.at).Addresses(ctx, "ipv4only.arpa."); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := server(good.at).Addresses(t.Context(), "broken.arpa."); err == nil {
		t.Errorf("a failure is an answer: %v", list)
	}
}

// A client by TCP whose resolvers are slow was hung up on, with its answer made.
func TestAClientByTCPWaitsForSlowResolvers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		s := server()
		s.Resolvers = func() []netip.AddrPort { time.Sleep(2 * idleTime); return nil }
		done := make(chan bool)
		go func() { s.ServeStream(t.Context(), theirs); close(done) }()
		asked := query(t, "slow.test.", dnsmessage.TypeA, nil)
		must.Do(t, writeMessage(ours, asked))
		answer, err := readMessage(ours, longest)
		if err != nil || parsed(t, answer).RCode != dnsmessage.RCodeServerFailure {
			t.Errorf("it was answered %q, %v", answer, err)
		}
		ours.Close()
		<-done
	})
}

func TestAnAnswerThatIsTooLongIsAskedForByTCP(t *testing.T) {
	r := newResolver(t, "127.0.0.1:0")
	s := server(r.at)
	m := parsed(t, s.Answer(t.Context(), query(t, "big.test.", dnsmessage.TypeA, nil), false))
	if !m.Truncated || len(m.Answers) != 0 {
		t.Errorf("by UDP: %+v", m)
	}
	if m := parsed(t, s.Answer(t.Context(), query(t, "big.test.", dnsmessage.TypeA, nil), true)); len(m.Answers) != 60 {
		t.Errorf("by TCP: %+v", m)
	}
}

// F4: any opcode, transfers of zones and updates reached the resolver.
func TestNothingButQuestionsIsPassedOn(t *testing.T) {
	r := newResolver(t, "127.0.0.1:0")
	s := server(r.at)
	for name, tc := range map[string]struct {
		kind   dnsmessage.Type
		change func(*dnsmessage.Message)
		want   dnsmessage.RCode
	}{
		"an update":            {dnsmessage.TypeSOA, func(m *dnsmessage.Message) { m.OpCode = 5 }, dnsmessage.RCodeNotImplemented},
		"a notification":       {dnsmessage.TypeSOA, func(m *dnsmessage.Message) { m.OpCode = 4 }, dnsmessage.RCodeNotImplemented},
		"a status request":     {dnsmessage.TypeA, func(m *dnsmessage.Message) { m.OpCode = 2 }, dnsmessage.RCodeNotImplemented},
		"a zone transfer":      {dnsmessage.TypeAXFR, nil, dnsmessage.RCodeRefused},
		"a transaction key":    {249, nil, dnsmessage.RCodeRefused},
		"of no type":           {0, nil, dnsmessage.RCodeRefused},
		"a part of a transfer": {251, nil, dnsmessage.RCodeRefused},
		"everything":           {dnsmessage.TypeALL, nil, dnsmessage.RCodeRefused},
		"another class":        {dnsmessage.TypeTXT, func(m *dnsmessage.Message) { m.Questions[0].Class = dnsmessage.ClassCHAOS }, dnsmessage.RCodeRefused},
		"no question":          {dnsmessage.TypeA, func(m *dnsmessage.Message) { m.Questions = nil }, dnsmessage.RCodeNotImplemented},
		"two questions":        {dnsmessage.TypeA, func(m *dnsmessage.Message) { m.Questions = append(m.Questions, m.Questions[0]) }, dnsmessage.RCodeNotImplemented},
		"records behind the question": {dnsmessage.TypeA, func(m *dnsmessage.Message) {
			m.Additionals = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Class: dnsmessage.ClassINET}, Body: &dnsmessage.AResource{},
			}}
		}, dnsmessage.RCodeFormatError},
	} {
		t.Run(name, func(t *testing.T) {
			m := parsed(t, s.Answer(t.Context(), query(t, "host.test.", tc.kind, tc.change), false))
			if m.RCode != tc.want || !m.Response || len(m.Answers) > 0 {
				t.Errorf("got %+v", m.Header)
			}
		})
	}
	if s.Answer(t.Context(), query(t, "host.test.", dnsmessage.TypeA, func(m *dnsmessage.Message) { m.Response = true }), false) != nil {
		t.Error("an answer is answered")
	}
	if len(r.asked) > 0 {
		t.Errorf("the resolver was asked %x", r.asked)
	}
}

func TestAKnownNameHasItsOwnAddressesInEachAnswer(t *testing.T) {
	s := server()
	s.Only = true
	var unknown []string
	s.Unknown = func(name string, second bool) { unknown = append(unknown, fmt.Sprint(name, second)) }
	for range 2 {
		a := parsed(t, s.Answer(t.Context(), query(t, "KNOWN.test.", dnsmessage.TypeA, nil), false))
		aaaa := parsed(t, s.Answer(t.Context(), query(t, "known.TEST.", dnsmessage.TypeAAAA, nil), false))
		https := parsed(t, s.Answer(t.Context(), query(t, "known.test.", dnsmessage.TypeHTTPS, nil), false))
		if len(a.Answers) != 1 || len(aaaa.Answers) != 1 || len(https.Answers) != 0 || a.Questions[0].Name.String() != "KNOWN.test." {
			t.Fatalf("got %+v, %+v, %+v", a, aaaa, https)
		}
		v4 := netip.AddrFrom4(a.Answers[0].Body.(*dnsmessage.AResource).A)
		v6 := netip.AddrFrom16(aaaa.Answers[0].Body.(*dnsmessage.AAAAResource).AAAA)
		if s.Names.Name(v4) != "known.test" || s.Names.Name(v6) != "known.test" {
			t.Errorf("%s and %s stand for %q and %q", v4, v6, s.Names.Name(v4), s.Names.Name(v6))
		}
	}
	for _, kind := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA, dnsmessage.TypeTXT} {
		if m := parsed(t, s.Answer(t.Context(), query(t, "evil.test.", kind, nil), false)); m.RCode != dnsmessage.RCodeNameError {
			t.Errorf("%v of another name: %+v", kind, m.Header)
		}
	}
	m := parsed(t, s.Answer(t.Context(), query(t, "evil.test.", dnsmessage.TypeA, func(m *dnsmessage.Message) {
		m.Additionals = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName("."), Type: dnsmessage.TypeOPT, Class: ours}, Body: &dnsmessage.OPTResource{},
		}}
	}), false))
	if o := m.Additionals[0].Body.(*dnsmessage.OPTResource).Options; len(o) != 1 || !strings.Contains(string(o[0].Data), "not on the list of hosts") {
		t.Errorf("one that understands reasons reads %+v", o)
	}
	if !slices.Equal(unknown, []string{"evil.testfalse", "evil.testtrue", "evil.testfalse", "evil.testfalse"}) {
		t.Errorf("told of %q", unknown)
	}
}

func TestNobodyCanMakeUsRememberNamesWithoutEnd(t *testing.T) {
	n := NewNames()
	for i := range mostNames {
		if _, _, ok := n.Addresses(strings.Repeat("x", i%50) + netip.AddrFrom4([4]byte{0, 0, byte(i >> 8), byte(i)}).String()); !ok {
			t.Fatalf("no room for the name %d", i)
		}
	}
	if _, _, ok := n.Addresses("one more"); ok {
		t.Error("there is room for another")
	}
	if got := n.Name(netip.MustParseAddr("198.19.255.255")); got != "" {
		t.Errorf("an address that nobody has stands for %q", got)
	}
}

// A program may remember an address for longer than the helper runs that it had it from.
func TestAnotherHelperGivesANameTheSameAddress(t *testing.T) {
	first, second := NewNames(), NewNames()
	first.Addresses("other.test")
	v4, v6, _ := first.Addresses("host.test")
	if again4, again6, _ := second.Addresses("host.test"); again4 != v4 || again6 != v6 || second.Name(v4) != "host.test" {
		t.Errorf("%s and %s; want %s and %s", again4, again6, v4, v6)
	}
}

// Two names whose numbers would be the same have two addresses.
func TestNoTwoNamesShareAnAddress(t *testing.T) {
	n := NewNames()
	v4, _, _ := n.Addresses("host.test")
	n = NewNames()
	a4, first := v4.As4(), range4.Addr().As4()
	number := binary.BigEndian.Uint32(a4[:]) - binary.BigEndian.Uint32(first[:])
	n.number["other.test"], n.name[number] = number, "other.test"
	if other, v6, _ := n.Addresses("host.test"); other == v4 || n.Name(v4) != "other.test" || n.Name(v6) != "host.test" {
		t.Errorf("%s stands for both", v4)
	}
}

func TestAFloodOfQuestionsIsCut(t *testing.T) {
	now := time.Now()
	b := newLimiter()
	passed := 0
	for range 10 * burst {
		if b.AllowN(now, 1) {
			passed++
		}
	}
	if passed != burst {
		t.Errorf("%d pass at once; want %d", passed, burst)
	}
	if left := b.TokensAt(now.Add(time.Second)); left != perSecond {
		t.Errorf("%v are left after a second", left)
	}
}

func TestNameservers(t *testing.T) {
	for name, tc := range map[string]struct{ conf, want string }{
		"systemd-resolved": {"# made\nnameserver 127.0.0.53\noptions edns0\n", "[127.0.0.53:53]"},
		"scoped":           {"nameserver fe80::1%eth0\nnameserver 2001:db8::53\n", "[[fe80::1%eth0]:53 [2001:db8::53]:53]"},
		"four":             {strings.Repeat("nameserver 192.0.2.1\n", 4), "[192.0.2.1:53 192.0.2.1:53 192.0.2.1:53]"},
		"none":             {"search home\nnameserver\nnameserver x\n#nameserver 10.0.0.1\n", "[127.0.0.1:53]"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, a := range Nameservers([]byte(tc.conf)) {
				got = append(got, a.String())
			}
			if text := "[" + strings.Join(got, " ") + "]"; text != tc.want {
				t.Errorf("got %s; want %s", text, tc.want)
			}
		})
	}
}

// What comes out of a query is a question that can be read, and nothing else.
func FuzzQuestion(f *testing.F) {
	f.Add([]byte{0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 4, 'h', 'o', 's', 't', 0, 0, 1, 0, 1})
	f.Fuzz(func(t *testing.T, query []byte) {
		q, err := parse(query)
		if err != nil {
			return
		}
		upstream, err := q.upstream(9)
		if err != nil {
			return
		}
		again, err := parse(upstream)
		if err != nil || again.Question != q.Question || again.header.ID != 9 || len(upstream) > 300 {
			t.Errorf("%x becomes %x: %+v, %v", query, upstream, again, err)
		}
		s := server()
		s.Answer(context.Background(), query, false)
	})
}
