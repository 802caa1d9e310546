package stack

import (
	"fmt"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/nested"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	tcpipstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"claudebox/internal/network/link"
)

// Attach gives the stack its interface. It calls lost when the interface is gone.
func (s *Stack) Attach(fd int, kind link.Kind, lost func(error)) error {
	d, err := newDevice(fd, kind)
	if err == nil {
		err = s.attach(d)
	}
	if err == nil {
		go func() { lost(d.deliver()) }()
	}
	return err
}

func (s *Stack) attach(endpoint tcpipstack.LinkEndpoint) error {
	f := &filter{stack: s}
	f.Init(endpoint, f)
	if err := s.gvisor.CreateNICWithOptions(nic, f, tcpipstack.NICOptions{}); err != nil {
		return fmt.Errorf("make an interface: %s", err)
	}
	// The interface accepts packets for every address, and answers from the address that a packet was for.
	s.gvisor.SetPromiscuousMode(nic, true)
	s.gvisor.SetSpoofing(nic, true)
	s.gvisor.SetRouteTable([]tcpip.Route{
		{Destination: header.IPv4EmptySubnet, NIC: nic},
		{Destination: header.IPv6EmptySubnet, NIC: nic},
	})
	for _, a := range []tcpip.ProtocolAddress{
		{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: address(link.Server4).WithPrefix()},
		{Protocol: ipv6.ProtocolNumber, AddressWithPrefix: address(link.Server6).WithPrefix()},
	} {
		if err := s.gvisor.AddProtocolAddress(nic, a, tcpipstack.AddressProperties{}); err != nil {
			return fmt.Errorf("give the interface an address: %s", err)
		}
	}
	return nil
}

// filter passes on only packets that an ordinary kernel sends, from the sandbox's own addresses. It
// stands between the interface and the stack.
type filter struct {
	nested.Endpoint
	stack *Stack
}

// DeliverNetworkPacket implements [tcpipstack.NetworkDispatcher].
func (f *filter) DeliverNetworkPacket(protocol tcpip.NetworkProtocolNumber, pkt *tcpipstack.PacketBuffer) {
	if !admits(protocol, pkt) {
		return
	}
	// The library would answer IPv6 echo requests for all addresses.
	if ip, echo := isICMPv6(protocol, pkt); echo {
		f.stack.echo(addrPort(ip.DestinationAddress(), 0), pkt.Data().AsRange().ToSlice()[header.IPv6MinimumSize:])
		return
	}
	f.Endpoint.DeliverNetworkPacket(protocol, pkt)
}

var (
	sandbox4, sandbox6 = address(link.Sandbox4), address(link.Sandbox6)
	loopback4, server4 = address(link.Loopback4), address(link.Server4)
)

func admits(protocol tcpip.NetworkProtocolNumber, pkt *tcpipstack.PacketBuffer) bool {
	switch protocol {
	case ipv4.ProtocolNumber:
		b, ok := pkt.Data().PullUp(header.IPv4MinimumSize)
		return ok && admits4(b)
	case ipv6.ProtocolNumber:
		b, ok := pkt.Data().PullUp(header.IPv6MinimumSize)
		return ok && admits6(b) && !isOtherFragment(b, pkt)
	}
	return false
}

// admits4 reports whether an IPv4 packet has no options and comes from the sandbox. The sandbox's loopback
// address may only answer the stack.
func admits4(ip header.IPv4) bool {
	const version4NoOptions = 0x45
	from, to := ip.SourceAddress(), ip.DestinationAddress()
	return ip[0] == version4NoOptions &&
		(from == sandbox4 || from == loopback4 && to == server4)
}

func isICMPv6(protocol tcpip.NetworkProtocolNumber, pkt *tcpipstack.PacketBuffer) (header.IPv6, bool) {
	if protocol != ipv6.ProtocolNumber {
		return nil, false
	}
	b, ok := pkt.Data().PullUp(header.IPv6MinimumSize)
	return b, ok && header.IPv6(b).NextHeader() == uint8(header.ICMPv6ProtocolNumber)
}

// admits6 reports whether an IPv6 packet comes from the sandbox and has no extension header but that
// of a fragment, see [isOtherFragment].
func admits6(ip header.IPv6) bool {
	if ip[0]>>4 != header.IPv6Version || ip.SourceAddress() != sandbox6 {
		return false
	}
	switch ip.NextHeader() {
	case uint8(header.TCPProtocolNumber), uint8(header.UDPProtocolNumber), uint8(header.ICMPv6ProtocolNumber),
		uint8(header.IPv6FragmentHeader):
		return true
	}
	return false
}

// isOtherFragment reports whether a packet is a fragment, but not of UDP. The sandbox's kernel sends
// no other fragments.
func isOtherFragment(ip header.IPv6, pkt *tcpipstack.PacketBuffer) bool {
	if ip.NextHeader() != uint8(header.IPv6FragmentHeader) {
		return false
	}
	b, ok := pkt.Data().PullUp(header.IPv6MinimumSize + header.IPv6FragmentHeaderSize)
	return !ok || b[header.IPv6MinimumSize] != uint8(header.UDPProtocolNumber)
}
