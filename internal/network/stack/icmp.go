package stack

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	tcpipstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"claudebox/internal/network/flow"
	"claudebox/internal/network/link"
)

// pingTime bounds the wait for the answer to an echo request.
const pingTime = 5 * time.Second

// acceptICMP is called by gVisor for each ICMP message over IPv4 (over IPv6: [filter]). true: it is dealt with.
func (s *Stack) acceptICMP(id tcpipstack.TransportEndpointID, pkt *tcpipstack.PacketBuffer) bool {
	s.echo(addrPort(id.LocalAddress, 0), tcpipstack.PayloadSince(pkt.TransportHeader()).ToSlice())
	return true
}

// echo answers an echo request, of ICMP or ICMPv6, and ignores other messages. For an address outside it sends a
// request from the host and passes on the answer: the kernel lets ordinary users do that (net.ipv4.ping_group_range).
func (s *Stack) echo(to netip.AddrPort, message []byte) {
	if !isEcho(message, to.Addr()) {
		return
	}
	if isServer(to.Addr()) {
		s.answerEcho(to.Addr(), message)
		return
	}
	f, known := s.flowOf(flow.ICMP, to)
	if !known || s.judge(f).Action != flow.Dial {
		return
	}
	select {
	case s.pings <- struct{}{}:
	default:
		return // too many requests wait already
	}
	go func() {
		defer func() { <-s.pings }()
		if s.admit(s.ctx, f) != nil {
			return
		}
		if answer := s.pingOut(to.Addr(), message); answer != nil {
			copy(answer[4:6], message[4:6]) // the identifier, for which the host's kernel has set its own
			s.answerEcho(to.Addr(), answer)
		}
	}()
}

func isEcho(message []byte, to netip.Addr) bool {
	if len(message) < header.ICMPv4MinimumSize {
		return false
	}
	if to.Is4() {
		return message[0] == byte(header.ICMPv4Echo)
	}
	return message[0] == byte(header.ICMPv6EchoRequest)
}

// ping sends an echo request and returns the answer; nil if there was none.
func ping(to netip.Addr, message []byte) []byte {
	domain, protocol := unix.AF_INET, unix.IPPROTO_ICMP
	if to.Is6() {
		domain, protocol = unix.AF_INET6, unix.IPPROTO_ICMPV6
	}
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return nil
	}
	file := os.NewFile(uintptr(fd), "ping")
	defer file.Close()
	conn, err := net.FilePacketConn(file)
	if err != nil {
		return nil
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(pingTime))
	if _, err := conn.WriteTo(message, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, 0))); err != nil {
		return nil
	}
	answer := make([]byte, 1<<16)
	n, _, err := conn.ReadFrom(answer)
	if err != nil || n < header.ICMPv4MinimumSize {
		return nil
	}
	return answer[:n]
}

// answerEcho sends a message to the sandbox as the answer to an echo request.
func (s *Stack) answerEcho(from netip.Addr, message []byte) {
	message = bytes.Clone(message)
	message[0], message[1] = byte(header.ICMPv4EchoReply), 0
	if from.Is6() {
		message[0] = byte(header.ICMPv6EchoReply)
	}
	s.sendICMP(from, message)
}

// obstacle is why an address cannot be reached, as ICMP (RFC 792) and ICMPv6 (RFC 4443, 3.1) say it.
type obstacle struct {
	v4 header.ICMPv4Code
	v6 header.ICMPv6Code
}

var (
	noNetwork = obstacle{header.ICMPv4NetUnreachable, header.ICMPv6NetworkUnreachable}
	noHost    = obstacle{header.ICMPv4HostUnreachable, header.ICMPv6AddressUnreachable}
	noPort    = obstacle{header.ICMPv4PortUnreachable, header.ICMPv6PortUnreachable}
)

// sendUnreachable sends the sandbox an ICMP error for a packet from client to an address. For TCP, sequence is the
// sequence number of the SYN.
func (s *Stack) sendUnreachable(protocol tcpip.TransportProtocolNumber, client, to netip.AddrPort, sequence uint32,
	why obstacle,
) {
	quoted := []byte{ // the first 8 bytes of the packet's header, by which the client knows its connection
		byte(client.Port() >> 8), byte(client.Port()), byte(to.Port() >> 8), byte(to.Port()),
		byte(sequence >> 24), byte(sequence >> 16), byte(sequence >> 8), byte(sequence),
	}
	if protocol == header.UDPProtocolNumber {
		copy(quoted[4:], []byte{0, header.UDPMinimumSize, 0, 0}) // length and checksum
	}
	message := make([]byte, header.ICMPv4MinimumSize)
	message[0], message[1] = byte(header.ICMPv4DstUnreachable), byte(why.v4)
	ip := encodeIP(client.Addr(), to.Addr(), protocol, len(quoted))
	if to.Addr().Is6() {
		message[0], message[1] = byte(header.ICMPv6DstUnreachable), byte(why.v6)
	}
	s.sendICMP(to.Addr(), append(append(message, ip...), quoted...))
}

// encodeIP returns the IP header of a packet with length bytes of content.
func encodeIP(from, to netip.Addr, protocol tcpip.TransportProtocolNumber, length int) []byte {
	const ttl = 64
	if from.Is4() {
		ip := header.IPv4(make([]byte, header.IPv4MinimumSize))
		ip.Encode(&header.IPv4Fields{
			TotalLength: uint16(len(ip) + length), TTL: ttl, Protocol: uint8(protocol), SrcAddr: address(from),
			DstAddr: address(to),
		})
		ip.SetChecksum(^ip.CalculateChecksum())
		return ip
	}
	ip := header.IPv6(make([]byte, header.IPv6MinimumSize))
	ip.Encode(&header.IPv6Fields{
		PayloadLength: uint16(length), TransportProtocol: protocol, HopLimit: ttl, SrcAddr: address(from),
		DstAddr: address(to),
	})
	return ip
}

// sendICMP sets the checksum of a message and sends it to the sandbox.
func (s *Stack) sendICMP(from netip.Addr, message []byte) {
	message[2], message[3] = 0, 0
	to, protocol := link.Sandbox4, header.ICMPv4ProtocolNumber
	sum := uint16(0)
	if from.Is6() {
		to, protocol = link.Sandbox6, header.ICMPv6ProtocolNumber
		sum = header.PseudoHeaderChecksum(protocol, address(from), address(to), uint16(len(message)))
	}
	sum = ^checksum.Checksum(message, sum)
	message[2], message[3] = byte(sum>>8), byte(sum)
	packet := append(encodeIP(from, to, protocol, len(message)), message...)
	s.gvisor.WriteRawPacket(nic, protocolOf(from), buffer.MakeWithData(packet))
}
