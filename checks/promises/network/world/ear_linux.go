package world

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"claudebox/checks/promises/network/target"
)

// groups are what the ear listens to beside its own addresses and broadcasts.
var groups = []netip.Addr{netip.MustParseAddr("239.1.2.3"), netip.MustParseAddr("ff02::4d")}

// serveEar answers, outside, whatever reaches the LAN by datagrams that have no
// single receiver, or are of UDP-Lite.
func (w *World) serveEar() error {
	for _, network := range []string{"udp4", "udp6"} {
		c, err := w.outside.listenPacket(network, fmt.Sprintf(":%d", target.EarPort))
		if err != nil {
			return err
		}
		w.closers = append(w.closers, c.Close)
		if err := w.outside.do(func() error { return join(c.(syscall.Conn), network == "udp6") }); err != nil {
			return err
		}
		go answerDatagrams(c, "ear")
	}
	return w.serveLite()
}

func join(c syscall.Conn, v6 bool) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	link, err := net.InterfaceByName("eth0")
	if err != nil {
		return err
	}
	var joined error
	err = raw.Control(func(fd uintptr) {
		for _, g := range groups {
			switch {
			case v6 && g.Is6():
				joined = unix.SetsockoptIPv6Mreq(int(fd), unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, &unix.IPv6Mreq{Multiaddr: g.As16(), Interface: uint32(link.Index)})
			case !v6 && g.Is4():
				joined = unix.SetsockoptIPMreqn(int(fd), unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreqn{Multiaddr: g.As4(), Ifindex: int32(link.Index)})
			}
		}
	})
	return errors.Join(err, joined)
}

// serveLite listens by UDP-Lite, where the kernel still has it.
func (w *World) serveLite() error {
	var fd int
	err := w.outside.do(func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_UDPLITE)
		return err
	})
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil
	}
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	file := os.NewFile(uintptr(fd), "UDP-Lite")
	defer file.Close()
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: target.EarPort}); err != nil {
		return os.NewSyscallError("bind", err)
	}
	c, err := net.FilePacketConn(file)
	if err != nil {
		return err
	}
	w.closers = append(w.closers, c.Close)
	go answerDatagrams(c, "ear")
	return nil
}
