package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/checks/promises/network/target"
)

// patience bounds each wait for the other side, unless a way has its own bound: an
// answer that comes at all comes sooner; what is dropped in silence takes all of it.
const (
	patience = 6 * time.Second
	again    = 500 * time.Millisecond // a datagram is sent anew after this
)

// way is one protocol with one trick, or none ("plain"). Most tricks choose the
// interface that a packet leaves by, past the routes, as an unprivileged process may.
type way struct {
	protocol, trick string
	kind, number    int // socket's type and protocol
	prepare         func(fd int, v6 bool, out outlet) error
	mapped, control bool          // IPv4 by an IPv6 socket; the interface comes with each packet
	patience        time.Duration // 0: the usual
}

func (w way) bound() time.Duration {
	if w.patience > 0 {
		return w.patience
	}
	return patience
}

// within returns the way with d as the bound of each wait.
func (w way) within(d time.Duration) way {
	w.patience = d
	return w
}

var ways = []way{
	{protocol: "tcp", trick: "plain", kind: unix.SOCK_STREAM},
	{protocol: "tcp", trick: "bind to device", kind: unix.SOCK_STREAM, prepare: bindToDevice},
	{protocol: "tcp", trick: "unicast interface", kind: unix.SOCK_STREAM, prepare: unicastInterface},
	{protocol: "tcp", trick: "IPv4-mapped", kind: unix.SOCK_STREAM, mapped: true},
	{protocol: "tcp", trick: "IPv4-mapped, device", kind: unix.SOCK_STREAM, mapped: true, prepare: bindToDevice},
	{protocol: "udp", trick: "plain", kind: unix.SOCK_DGRAM},
	{protocol: "udp", trick: "bind to device", kind: unix.SOCK_DGRAM, prepare: bindToDevice},
	{protocol: "udp", trick: "unicast interface", kind: unix.SOCK_DGRAM, prepare: unicastInterface},
	{protocol: "udp", trick: "packet info", kind: unix.SOCK_DGRAM, control: true},
	{protocol: "udp", trick: "IPv4-mapped", kind: unix.SOCK_DGRAM, mapped: true},
	{protocol: "udp", trick: "IPv4-mapped, device", kind: unix.SOCK_DGRAM, mapped: true, prepare: bindToDevice},
	{protocol: "icmp", trick: "plain", kind: unix.SOCK_DGRAM, number: echo},
	{protocol: "icmp", trick: "bind to device", kind: unix.SOCK_DGRAM, number: echo, prepare: bindToDevice},
}

// echo stands for ICMP of the address's own family.
const echo = unix.IPPROTO_ICMP

func bindToDevice(fd int, _ bool, out outlet) error {
	return unix.BindToDevice(fd, out.name)
}

// unicastInterface takes the index in network byte order (ip(7), ipv6(7)).
func unicastInterface(fd int, v6 bool, out outlet) error {
	var index [4]byte
	binary.BigEndian.PutUint32(index[:], uint32(out.index))
	value := int(binary.NativeEndian.Uint32(index[:]))
	if v6 {
		return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_UNICAST_IF, value)
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_UNICAST_IF, value)
}

func (w way) suits(a netip.Addr) bool { return a.Is4() || !w.mapped }

// address is the target's, or that of the gateway it stands for.
func (out outlet) address(t target.Target) netip.Addr {
	switch t.Name {
	case target.Gateway:
		return out.gateway
	case target.Gateway6:
		return out.gateway6
	}
	return t.Addr
}

// reach tells who answered.
func (w way) reach(t target.Target, out outlet) (string, error) {
	v6 := w.mapped || t.Addr.Is6()
	fd, err := w.socket(v6)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	if w.prepare != nil {
		if err := w.prepare(fd, v6, out); err != nil {
			return "", err
		}
	}
	to := socketAddress(t, v6, out)
	switch {
	case w.protocol == "tcp":
		return overStream(fd, to, w.bound())
	case w.protocol == "icmp":
		return overDatagram(fd, w.bound(), func() error { return unix.Sendto(fd, echoRequest(v6), 0, to) }, func([]byte) string { return "reply" })
	case w.control:
		return overDatagram(fd, w.bound(), func() error { return unix.Sendmsg(fd, []byte("x"), leaveBy(out, v6), to, 0) }, name)
	}
	// A socket that is connected hears of it when nobody listens.
	if err := unix.Connect(fd, to); err != nil {
		return "", err
	}
	return overDatagram(fd, w.bound(), func() error { _, err := unix.Write(fd, []byte("x")); return err }, name)
}

func (w way) socket(v6 bool) (int, error) {
	family, number := unix.AF_INET, w.number
	if v6 {
		family = unix.AF_INET6
		if number == echo {
			number = unix.IPPROTO_ICMPV6
		}
	}
	return unix.Socket(family, w.kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, number)
}

func socketAddress(t target.Target, v6 bool, out outlet) unix.Sockaddr {
	if !v6 {
		return &unix.SockaddrInet4{Port: int(t.Port), Addr: t.Addr.As4()}
	}
	to := &unix.SockaddrInet6{Port: int(t.Port), Addr: t.Addr.As16()}
	if t.Addr.Is6() && (t.Addr.IsLinkLocalUnicast() || t.Addr.IsMulticast()) {
		to.ZoneId = uint32(out.index)
	}
	return to
}

// leaveBy is a control message that names the interface, IP_PKTINFO's or
// IPV6_PKTINFO's.
func leaveBy(out outlet, v6 bool) []byte {
	if v6 {
		return unix.PktInfo6(&unix.Inet6Pktinfo{Ifindex: uint32(out.index)})
	}
	return unix.PktInfo4(&unix.Inet4Pktinfo{Ifindex: int32(out.index)})
}

func overStream(fd int, to unix.Sockaddr, wait time.Duration) (string, error) {
	if err := connect(fd, to, wait); err != nil {
		return "", err
	}
	return request(fd, wait)
}

// request asks a connection who is at its end.
func request(fd int, wait time.Duration) (string, error) {
	if _, err := unix.Write(fd, []byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
		return "", err
	}
	var all []byte
	for {
		piece, err := receive(fd, wait)
		if err != nil {
			return "", err
		}
		if len(piece) == 0 {
			return name(all), nil
		}
		all = append(all, piece...)
	}
}

// overDatagram sends again and again until an answer or an error comes, or the time is
// up (EAGAIN).
func overDatagram(fd int, wait time.Duration, send func() error, read func([]byte) string) (string, error) {
	for range max(wait/again, 1) {
		if err := send(); err != nil {
			return "", err
		}
		answer, err := receive(fd, again)
		switch {
		case err == nil:
			return read(answer), nil
		case !errors.Is(err, unix.EAGAIN):
			return "", err
		}
	}
	return "", unix.EAGAIN
}

// name returns who answered: services end each answer with a line that is their name.
func name(answer []byte) string {
	answer = bytes.TrimSpace(answer)
	return string(answer[bytes.LastIndexByte(answer, '\n')+1:])
}

// echoRequest is an ICMP echo; the kernel fills in the identifier and, for
// IPv6, the checksum.
func echoRequest(v6 bool) []byte {
	if v6 {
		return []byte{128, 0, 0, 0, 0, 1, 0, 1}
	}
	return []byte{8, 0, 0xf7, 0xfd, 0, 1, 0, 1}
}

// abstractWays are roads to the host's abstract sockets.
var abstractWays = []struct {
	protocol string
	reach    func() (string, error)
}{
	{"unix stream", func() (string, error) {
		return overUnix(unix.SOCK_STREAM, target.Abstract, func(fd int, to unix.Sockaddr) (string, error) { return overStream(fd, to, patience) })
	}},
	{"unix datagram", func() (string, error) {
		return overUnix(unix.SOCK_DGRAM, target.AbstractDatagram, func(fd int, to unix.Sockaddr) (string, error) {
			return "sent", unix.Sendto(fd, []byte("x"), 0, to)
		})
	}},
}

func overUnix(kind int, name string, talk func(fd int, to unix.Sockaddr) (string, error)) (string, error) {
	fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return talk(fd, &unix.SockaddrUnix{Name: name})
}

// outcome is who answered, or in parentheses the error.
func outcome(answer string, err error) string {
	var (
		errno  syscall.Errno
		lookup *net.DNSError
		late   net.Error
	)
	switch {
	case err == nil:
		return answer
	case errors.As(err, &lookup):
		return "(" + lookup.Err + ")"
	case errors.As(err, &late) && late.Timeout():
		return "(silence)"
	case !errors.As(err, &errno):
		return "(" + err.Error() + ")"
	case slices.Contains([]syscall.Errno{unix.EAGAIN, unix.EINPROGRESS, unix.ETIMEDOUT}, errno):
		return "(silence)"
	}
	return "(" + strings.TrimSpace(unix.ErrnoName(errno)) + ")"
}
