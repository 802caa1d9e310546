package netfilter

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/internal/network/forbidden"
	"claudebox/internal/network/netlink"
	"claudebox/internal/network/netns"
	"claudebox/internal/network/netns/nstest"
)

// The link leads to nobody: whether a packet may leave is seen when it is sent.
const (
	linkName    = "cb0"
	linkGateway = "192.0.2.1"
)

// indexOf asks by ioctl, which every socket of the namespace can be asked by
// (netdevice(7)).
func indexOf(fd int, name string) (uint32, error) {
	request, err := unix.NewIfreq(name)
	if err == nil {
		err = unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, request)
	}
	if err != nil {
		return 0, err
	}
	return request.Uint32(), nil
}

// connect makes the link, as pasta does after the rules are loaded.
func connect(t *testing.T, ns netns.Namespace) {
	t.Helper()
	fds, err := ns.Sockets(1, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	s := netlink.On(fds[0])
	defer s.Close()
	pair := netlink.New(unix.RTM_NEWLINK, unix.NLM_F_ACK|unix.NLM_F_CREATE, make([]byte, unix.SizeofIfInfomsg)...)
	pair.Text(unix.IFLA_IFNAME, linkName)
	pair.Nest(unix.IFLA_LINKINFO, func() { pair.Text(unix.IFLA_INFO_KIND, "veth") })
	if err := s.Ask(pair); err != nil {
		t.Skipf("no veth here: %v", err)
	}
	for _, name := range []string{"lo", linkName, "veth0"} {
		index, err := indexOf(s.FD(), name)
		if err != nil {
			t.Fatal(err)
		}
		header := make([]byte, unix.SizeofIfInfomsg)
		binary.NativeEndian.PutUint32(header[4:], index)
		binary.NativeEndian.PutUint32(header[8:], unix.IFF_UP)
		binary.NativeEndian.PutUint32(header[12:], unix.IFF_UP)
		if err := s.Ask(netlink.New(unix.RTM_SETLINK, unix.NLM_F_ACK, header...)); err != nil {
			t.Fatalf("raise %s: %v", name, err)
		}
	}
	index, _ := indexOf(s.FD(), linkName)
	for _, address := range []string{"192.0.2.2/24", "2001:db8:cb::2/64"} {
		p := netip.MustParsePrefix(address)
		m := netlink.New(unix.RTM_NEWADDR, unix.NLM_F_ACK|unix.NLM_F_CREATE, binary.NativeEndian.AppendUint32(
			[]byte{family2(p.Addr()), byte(p.Bits()), unix.IFA_F_NODAD, 0}, index)...)
		m.Bytes(unix.IFA_LOCAL, p.Addr().AsSlice())
		m.Bytes(unix.IFA_ADDRESS, p.Addr().AsSlice())
		if err := s.Ask(m); err != nil {
			t.Fatalf("add %s: %v", address, err)
		}
	}
	for _, gateway := range []netip.Addr{netip.MustParseAddr(linkGateway), netip.MustParseAddr("fe80::1")} {
		m := netlink.New(unix.RTM_NEWROUTE, unix.NLM_F_ACK|unix.NLM_F_CREATE,
			family2(gateway), 0, 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_BOOT, unix.RT_SCOPE_UNIVERSE, unix.RTN_UNICAST, 0, 0, 0, 0)
		m.Bytes(unix.RTA_GATEWAY, gateway.AsSlice())
		m.Native(unix.RTA_OIF, index)
		if err := s.Ask(m); err != nil {
			t.Fatalf("route by %s: %v", gateway, err)
		}
	}
}

func family2(a netip.Addr) byte {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// leaves reports whether a packet to there may leave.
func leaves(t *testing.T, ns netns.Namespace, to netip.AddrPort) bool {
	t.Helper()
	fds, err := ns.Sockets(1, int(family2(to.Addr())), unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	var there unix.Sockaddr
	if to.Addr().Is4() {
		there = &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}
	} else {
		there = &unix.SockaddrInet6{Addr: to.Addr().As16(), Port: int(to.Port())}
	}
	// A packet that waits for its neighbour has left as far as the rules go.
	err = unix.Sendto(fds[0], []byte("x"), 0, there)
	switch {
	case err == nil:
		return true
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENETUNREACH),
		errors.Is(err, unix.ECONNREFUSED), errors.Is(err, unix.EADDRNOTAVAIL):
		return false
	}
	t.Fatalf("send to %s: %v", to, err)
	return false
}

// cells are what a filter is held to: where packets may go.
var cells = []struct {
	to   string
	want bool
}{
	{"203.0.113.10:80", true},
	{"[2001:db8::10]:80", true},
	{"169.254.1.1:53", true},
	{"169.254.1.1:80", false},
	{"[2001:db8:cb::53]:53", true},
	{"[2001:db8:cb::53]:80", false},
	{"169.254.169.254:53", false},
	{"127.0.0.1:7", true},
	{"192.0.2.1:53", false},
	{"[fe80::1]:53", false},
	{"198.51.100.7:80", false}, // the host's own
}

func setUp(t *testing.T, rules []Rule) (netns.Namespace, *Filter) {
	t.Helper()
	ns, _ := nstest.Waiting(t)
	f, err := filterOf(ns, rules, append(forbidden.Prefixes(), netip.MustParsePrefix("198.51.100.7/32")))
	if err != nil {
		t.Skipf("no nf_tables here: %v", err)
	}
	t.Cleanup(func() { f.Close() })
	connect(t, ns)
	return ns, f
}

func TestOnlyTheInternetIsLeft(t *testing.T) {
	ns, _ := setUp(t, Rules())
	for _, c := range cells {
		if got := leaves(t, ns, netip.MustParseAddrPort(c.to)); got != c.want {
			t.Errorf("%s: leaves %v; want %v", c.to, got, c.want)
		}
	}
	for _, p := range forbidden.Prefixes() {
		for _, a := range []netip.Addr{p.Addr(), lastOf(p)} {
			if a.IsLoopback() || a.IsUnspecified() || isOwn(a) {
				continue
			}
			if leaves(t, ns, netip.AddrPortFrom(a, 7)) {
				t.Errorf("%s of %s is reached", a, p)
			}
		}
	}
}

// isOwn tells the addresses that are the loopback's business: all of
// 127.0.0.0/8 and what stands for it.
func isOwn(a netip.Addr) bool { return a.Is4() && (a.As4()[0] == 127 || a.As4()[0] == 0) || a.Is4In6() }

func TestWhatIsForbiddenLaterIsForbiddenAndTheRestStays(t *testing.T) {
	ns, f := setUp(t, Rules())
	for _, more := range []string{"203.0.113.0/24", "203.0.113.10/32", "2001:db8::/64", "203.0.0.0/16"} {
		if err := f.Forbid([]netip.Prefix{netip.MustParsePrefix(more)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, to := range []string{"203.0.113.10:80", "[2001:db8::10]:80", "203.0.1.1:80", "198.51.100.7:80", "10.1.2.3:80", "[fd00::5]:80"} {
		if leaves(t, ns, netip.MustParseAddrPort(to)) {
			t.Errorf("%s is reached", to)
		}
	}
	for _, to := range []string{"203.1.0.1:80", "[2001:db8:1::1]:80", "169.254.1.1:53"} {
		if !leaves(t, ns, netip.MustParseAddrPort(to)) {
			t.Errorf("%s is not reached", to)
		}
	}
}

// Many addresses are more than one message takes.
func TestThousandsOfNetworksAreForbidden(t *testing.T) {
	ns, f := setUp(t, Rules())
	var many []netip.Prefix
	for i := range 2000 {
		many = append(many, netip.PrefixFrom(netip.AddrFrom4([4]byte{203, byte(i >> 8), byte(i), 128}), 25))
	}
	if err := f.Forbid(many); err != nil {
		t.Fatal(err)
	}
	if leaves(t, ns, netip.MustParseAddrPort("203.3.9.200:80")) || !leaves(t, ns, netip.MustParseAddrPort("203.3.9.1:80")) {
		t.Error("not what was forbidden is forbidden")
	}
}

// Each rule is there for something.
func TestWithoutAnyOneRuleACellChanges(t *testing.T) {
	for i, rule := range Rules() {
		switch rule.Name {
		case "resolver 169.254.1.1 tcp", "resolver 2001:db8:cb::53 tcp", "neighbour solicitation", "neighbour advertisement",
			"ipv4 forbidden tcp", "ipv6 forbidden tcp", "tcp", "icmp", "icmpv6":
			continue // not seen by what UDP can send: checks/network sees them
		}
		t.Run(rule.Name, func(t *testing.T) {
			ns, _ := setUp(t, slices.Delete(Rules(), i, i+1))
			for _, c := range cells {
				if leaves(t, ns, netip.MustParseAddrPort(c.to)) != c.want {
					return
				}
			}
			t.Error("nothing has changed")
		})
	}
}
