package proxy

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// names is a name server whose answers change: the nth time a name is asked
// for, it has the nth address.
type names struct {
	mu    sync.Mutex
	zone  map[string][]string
	asked []string
}

func (n *names) resolver(t *testing.T) *net.Resolver {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		buffer := make([]byte, 1500)
		for {
			size, from, err := c.ReadFrom(buffer)
			if err != nil {
				return
			}
			c.WriteTo(n.answer(buffer[:size]), from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", c.LocalAddr().String())
	}}
}

func (n *names) answer(query []byte) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	var m dnsmessage.Message
	if m.Unpack(query) != nil {
		return nil
	}
	q := m.Questions[0]
	name := q.Name.String()
	reply := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true}, Questions: m.Questions}
	if q.Type == dnsmessage.TypeA {
		n.asked = append(n.asked, name)
		if left := n.zone[name]; len(left) > 0 {
			reply.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class},
				Body:   &dnsmessage.AResource{A: netip.MustParseAddr(left[0]).As4()},
			}}
			n.zone[name] = left[1:]
		}
	}
	packed, _ := reply.Pack()
	return packed
}

// questions are the names that were asked for.
func (n *names) questions() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.asked)
}

func dialed(t *testing.T, d dialer, name string) error {
	t.Helper()
	conn, err := d.dial(t.Context(), target{name, 443})
	if err == nil {
		conn.Close()
		t.Errorf("%s was connected to", name)
	}
	return err
}

func nowhere() []netip.Prefix { return nil }

func TestANameThatLeadsHome(t *testing.T) {
	n := &names{zone: map[string][]string{
		"loopback.example.": {"127.0.0.1"}, "zero.example.": {"0.0.0.0"}, "lan.example.": {"192.168.77.2"},
		"metadata.example.": {"169.254.169.254"}, "tailnet.example.": {"100.100.100.100"}, "neighbour.example.": {"203.0.113.77"},
	}}
	d := dialer{n.resolver(t), func() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("203.0.113.64/26")} }}
	n.mu.Lock()
	all := slices.Collect(maps.Keys(n.zone))
	n.mu.Unlock()
	for _, name := range all {
		name = strings.TrimSuffix(name, ".")
		var no *refusal
		if err := dialed(t, d, name); !errors.As(err, &no) || no.what != name+":443" || !strings.Contains(no.why, "its address") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// DNS rebinding: a name that leads elsewhere once it was judged. Each
// connection is judged by the very address that it is made to, and a name is
// asked for once.
func TestRebinding(t *testing.T) {
	l := listen(t)
	port := l.Addr().(*net.TCPAddr).Port
	n := &names{zone: map[string][]string{"rebind.example.": {"203.0.113.10", "127.0.0.1"}}}
	d := dialer{n.resolver(t), nowhere}
	// Looked up only: the first is of the internet, where nobody is to be reached.
	if _, err := d.resolver.LookupNetIP(t.Context(), "ip", "rebind.example."); err != nil {
		t.Fatal(err)
	}
	n.mu.Lock()
	n.zone["rebind.example."] = []string{"127.0.0.1"}
	n.asked = nil
	n.mu.Unlock()
	var no *refusal
	if _, err := d.dial(t.Context(), target{"rebind.example", port}); !errors.As(err, &no) {
		t.Errorf("the second time it leads home: %v", err)
	}
	if asked := n.questions(); len(asked) != 1 {
		t.Errorf("asked for %q", asked)
	}
}

// With the host's search domains, a name that does not exist would be looked
// up below them, and lead into the house.
func TestNoSearchDomainIsTried(t *testing.T) {
	n := &names{}
	err := dialed(t, dialer{n.resolver(t), nowhere}, "gone.example")
	var cannot *failure
	if !errors.As(err, &cannot) {
		t.Errorf("got %v", err)
	}
	for _, name := range n.questions() {
		if name != "gone.example." {
			t.Errorf("asked for %q", name)
		}
	}
}

func TestANameThatIsNotListedIsNotLookedUp(t *testing.T) {
	n := &names{}
	w := newWorld(t, "good.example")
	p := New(nil, w.journal)
	p.dial = dialer{n.resolver(t), nowhere}.dial
	if _, err := p.reach(target{"secret-in-a-label.evil.example", 443}); err == nil || len(n.questions()) > 0 {
		t.Errorf("%v, asked for %q", err, n.questions())
	}
}

func TestTheHostsOwnNetworksAreKnown(t *testing.T) {
	own := hostNetworks()
	found := false
	for _, p := range own {
		found = found || p.Contains(netip.MustParseAddr("127.0.0.1"))
		if p.Bits() < 8 {
			t.Errorf("%s is no network", p)
		}
	}
	if !found {
		t.Errorf("not even the loopback: %v", own)
	}
}
