package main

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"claudebox/checks/promises/network/target"
)

// impatience bounds the attempts of which many are made.
const impatience = 700 * time.Millisecond

// roundabout are roads to what is forbidden that need no right at all.
var roundabout = []attempt{
	{"multicast", datagramTo(0, "239.1.2.3")},
	{"multicast that the interface is joined to", joined},
	{"multicast of IPv6", datagramTo(0, "ff02::4d")},
	{"broadcast", datagramTo(0, "255.255.255.255")},
	{"broadcast of the LAN", datagramTo(0, "192.168.77.255")},
	{"UDP-Lite", datagramTo(unix.IPPROTO_UDPLITE, target.LANPeer)},
	{"MPTCP", streamTo(unix.IPPROTO_MPTCP, target.LANPeer, nil)},
	{"MPTCP by the device", streamTo(unix.IPPROTO_MPTCP, target.LANPeer, bindToDevice)},
	{"TCP by the interface's index", streamTo(0, target.LANPeer, bindToIndex)},
	{"SCTP", streamTo(unix.IPPROTO_SCTP, target.LANPeer, nil)},
	{"TCP fast open", fastOpen},
	{"TCP from a foreign address", streamTo(0, target.LANPeer, foreign)},
	{"TCP by a loose source route", streamTo(0, target.Internet, sourceRoute(131))},
	{"TCP by a strict source route", streamTo(0, target.Internet, sourceRoute(137))},
	{"UDP by a routing header of type 0", routingHeader(0, target.Internet6, target.ULAPeer)},
	{"UDP by a routing header of type 2", routingHeader(2, target.Internet6, target.ULAPeer)},
	{"UDP by a routing header of type 2, the other way", routingHeader(2, target.ULAPeer, target.Internet6)},
	{"UDP by segment routing", routingHeader(4, target.Internet6, target.ULAPeer)},
	{"UDP by segment routing, the other way", routingHeader(4, target.ULAPeer, target.Internet6)},
	{"a datagram in many pieces", inPieces},
	{"DNS of the LAN's router", ask("udp", target.Router)},
	{"DNS of the LAN's router, TCP", ask("tcp", target.Router)},
	{"DNS of the tailnet", ask("udp", target.TailnetDNS)},
	{"DNS of the tailnet, TCP", ask("tcp", target.TailnetDNS)},
	{"DNS of the host's stub", ask("udp", target.StubDNS)},
	{"DNS of the host's stub, TCP", ask("tcp", target.StubDNS)},
	{"another port of the resolver", otherPorts},
	{"systemd-resolved's socket", connectUnix("/run/systemd/resolve/io.systemd.Resolve")},
	{"nscd's socket", connectUnix("/var/run/nscd/socket")},
	{"D-Bus", connectUnix("/run/dbus/system_bus_socket")},
}

// datagramTo sends to the ear of the world's LAN, which answers what it hears.
func datagramTo(protocol int, to string) func(outlet) error {
	return func(out outlet) error { return hear(out, protocol, netip.MustParseAddr(to), nil) }
}

func hear(out outlet, protocol int, to netip.Addr, prepare func(fd int) error) error {
	v6 := to.Is6()
	family := unix.AF_INET
	if v6 {
		family = unix.AF_INET6
	}
	return withSocket(family, unix.SOCK_DGRAM, protocol, func(fd int) error {
		if !v6 {
			if err := errors.Join(
				unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1),
				unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(out.index)}),
			); err != nil {
				return err
			}
		}
		if prepare != nil {
			if err := prepare(fd); err != nil {
				return err
			}
		}
		address := socketAddress(target.Target{Addr: to, Port: target.EarPort}, v6, out)
		if a, ok := address.(*unix.SockaddrInet6); ok && to.IsMulticast() {
			a.ZoneId = uint32(out.index)
		}
		if err := unix.Sendto(fd, []byte("x"), 0, address); err != nil {
			return err
		}
		_, err := receive(fd, impatience)
		return err
	})
}

func joined(out outlet) error {
	group := netip.MustParseAddr("239.1.2.3")
	return hear(out, 0, group, func(fd int) error {
		return unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreqn{Multiaddr: group.As4(), Ifindex: int32(out.index)})
	})
}

// streamTo succeeds when something answers.
func streamTo(protocol int, to string, prepare func(fd int, v6 bool, out outlet) error) func(outlet) error {
	return func(out outlet) error {
		_, err := way{protocol: "tcp", kind: unix.SOCK_STREAM, number: protocol, prepare: prepare, patience: impatience}.
			reach(target.Target{Addr: netip.MustParseAddr(to), Port: target.Port}, out)
		return err
	}
}

// fastOpen sends with the first packet, without a call of connect(2).
func fastOpen(out outlet) error {
	return withSocket(unix.AF_INET, unix.SOCK_STREAM, 0, func(fd int) error {
		to := socketAddress(target.Target{Addr: netip.MustParseAddr(target.LANPeer), Port: target.Port}, false, out)
		err := unix.Sendto(fd, []byte("GET / HTTP/1.0\r\n\r\n"), unix.MSG_FASTOPEN, to)
		if err != nil && !errors.Is(err, unix.EINPROGRESS) {
			return err
		}
		if errors.Is(err, unix.EINPROGRESS) {
			if err := await(fd, unix.POLLOUT, impatience); err != nil {
				return err
			}
			if _, err := unix.Write(fd, []byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
				return err
			}
		}
		_, err = receive(fd, impatience)
		return err
	})
}

// foreign binds to an address of the host, which anybody may (IP_FREEBIND).
func foreign(fd int, _ bool, _ outlet) error {
	return errors.Join(
		unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_FREEBIND, 1),
		unix.Bind(fd, &unix.SockaddrInet4{Addr: netip.MustParseAddr(target.HostLAN).As4()}),
	)
}

func bindToIndex(fd int, _ bool, out outlet) error {
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, out.index)
}

// sourceRoute makes packets go to the LAN by way of where they are sent to
// (RFC 791, options 131 and 137).
func sourceRoute(kind byte) func(fd int, v6 bool, out outlet) error {
	return func(fd int, _ bool, _ outlet) error {
		to := netip.MustParseAddr(target.LANPeer).As4()
		return unix.SetsockoptString(fd, unix.IPPROTO_IP, unix.IP_OPTIONS, string(append([]byte{1, kind, 7, 4}, to[:]...)))
	}
}

// routingHeader sends to an address, with another one in a routing header: one
// of them is where the packet goes first (RFC 8200, 4.4, RFC 6275, 6.4, and RFC
// 8754).
func routingHeader(kind byte, to, through string) func(outlet) error {
	return func(out outlet) error {
		first, last := netip.MustParseAddr(to).As16(), netip.MustParseAddr(through).As16()
		header := append([]byte{0, 2, kind, 1, 0, 0, 0, 0}, last[:]...) // one segment left of one
		if kind == 4 {
			header = append([]byte{0, 4, kind, 1, 1, 0, 0, 0}, last[:]...) // of two, listed from the last
			header = append(header, first[:]...)
		}
		return hear(out, 0, netip.MustParseAddr(to), func(fd int) error {
			return unix.SetsockoptString(fd, unix.IPPROTO_IPV6, unix.IPV6_RTHDR, string(header))
		})
	}
}

// inPieces: only the first piece of a datagram has ports to look at.
func inPieces(out outlet) error {
	return withSocket(unix.AF_INET, unix.SOCK_DGRAM, 0, func(fd int) error {
		to := socketAddress(target.Target{Addr: netip.MustParseAddr(target.LANPeer), Port: target.Port}, false, out)
		if err := unix.Sendto(fd, make([]byte, 60000), 0, to); err != nil {
			return err
		}
		_, err := receive(fd, impatience)
		return err
	})
}

// ask is a query as a tunnel through DNS would send it, to a resolver that is
// out of bounds.
func ask(network, server string) func(outlet) error {
	return func(outlet) error { return query(network, server, impatience) }
}

func query(network, server string, wait time.Duration) error {
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("good.test."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
	}
	packed, err := m.Pack()
	if err != nil {
		return err
	}
	conn, err := net.DialTimeout(network, net.JoinHostPort(server, "53"), wait)
	if err != nil {
		return err
	}
	defer conn.Close()
	if network == "tcp" {
		packed = append(binary.BigEndian.AppendUint16(nil, uint16(len(packed))), packed...)
	}
	if err := conn.SetDeadline(time.Now().Add(wait)); err != nil {
		return err
	}
	if _, err := conn.Write(packed); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 512))
	return err
}

// otherPorts looks for a service beside DNS at the resolver that the sandbox was
// given, and at all that answers for the network inside: a router's web page.
func otherPorts(out outlet) error {
	servers := slices.Clone(ownResolvers)
	if first, err := ownResolver(); err == nil {
		servers = append(servers, first)
	}
	for _, gateway := range []netip.Addr{out.gateway, out.gateway6.WithZone(out.name)} {
		if gateway.IsValid() {
			servers = append(servers, gateway.String())
		}
	}
	var group anyOf
	for _, server := range servers {
		for _, port := range []string{"22", "54", "80", "443", "8080"} {
			group.try(func() error {
				conn, err := net.DialTimeout("tcp", net.JoinHostPort(server, port), impatience)
				if err == nil {
					conn.Close()
				}
				return err
			})
		}
	}
	return group.wait()
}

// anyOf tries several things at once; one that succeeds is enough.
type anyOf struct {
	group sync.WaitGroup
	lock  sync.Mutex
	won   bool
}

func (a *anyOf) try(attempt func() error) {
	a.group.Go(func() {
		if attempt() == nil {
			a.lock.Lock()
			defer a.lock.Unlock()
			a.won = true
		}
	})
}

func (a *anyOf) wait() error {
	a.group.Wait()
	if a.won {
		return nil
	}
	return unix.ECONNREFUSED
}

func ownResolver() (string, error) {
	text, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return "", err
	}
	return firstNameserver(string(text))
}

func connectUnix(path string) func(outlet) error {
	return func(outlet) error {
		return withSocket(unix.AF_UNIX, unix.SOCK_STREAM, 0, func(fd int) error {
			return unix.Connect(fd, &unix.SockaddrUnix{Name: path})
		})
	}
}

// ownResolvers are where claudebox answers names.
var ownResolvers = []string{"169.254.1.1", "fd00:cb::53"}
