package stack

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	tcpipstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"claudebox/internal/network/dns"
	"claudebox/internal/network/link"
	"claudebox/internal/network/policy"
)

// fuzzed is one stack for all packets of a fuzzing process: what one leaves
// behind the next one meets.
type fuzzed struct {
	stack   *Stack
	link    *channel.Endpoint
	out     *outside
	packets int
}

// newFuzzed makes a stack for each tier. In tier allow one name is listed, and
// known to have been asked for.
var newFuzzed = sync.OnceValue(func() (all []*fuzzed) {
	listed, err := policy.ParseEntry("host.test", false)
	if err != nil {
		panic(err)
	}
	for _, rules := range []policy.Rules{{Tier: policy.TierInet}, {Tier: policy.TierAllow, Allow: []policy.Entry{listed}}, {Tier: policy.TierNone}} {
		t := &testing.T{}
		o := newOutside(t)
		o.names["host.test"] = netip.MustParseAddr("203.0.113.10")
		s := newStack(t, o, rules, nil)
		s.DNS.Names.Addresses("host.test")
		e := channel.New(1024, link.MTU, "")
		if err := s.attach(e); err != nil {
			panic(err)
		}
		all = append(all, &fuzzed{stack: s, link: e, out: o})
	}
	return all
})

// mostFuzzed bounds what three stacks and the fuzzing itself hold.
const mostFuzzed = 256 << 20

// Whatever packets come, nothing is dialled that may not be, nothing panics, and
// what is held stays bounded. A packet's first byte says what of it is mended, so
// that it comes far.
func FuzzPackets(f *testing.F) {
	v4, v6, _ := dns.NewNames().Addresses("host.test")
	for _, to := range []string{"203.0.113.10:80", v4.String() + ":80", "[" + v6.String() + "]:443", "192.168.77.2:80", "169.254.1.1:53", "[2001:db8:ffff::10]:80", "[fd00::5]:80"} {
		at := netip.MustParseAddrPort(to)
		for _, protocol := range []tcpip.TransportProtocolNumber{header.TCPProtocolNumber, header.UDPProtocolNumber, header.ICMPv4ProtocolNumber, header.ICMPv6ProtocolNumber} {
			f.Add(byte(3), segment(at, protocol))
		}
	}
	f.Add(byte(3), append(segment(netip.MustParseAddrPort("169.254.1.1:53"), header.UDPProtocolNumber), "\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04host\x00\x00\x01\x00\x01"...))
	f.Fuzz(func(t *testing.T, mend byte, packet []byte) {
		if len(packet) == 0 || len(packet) > link.MTU {
			return
		}
		protocol := tcpip.NetworkProtocolNumber(header.IPv4ProtocolNumber)
		if packet[0]>>4 == 6 {
			protocol = header.IPv6ProtocolNumber
		}
		if mend&1 != 0 {
			mendHeader(packet)
		}
		if mend&2 != 0 {
			mendSum(packet)
		}
		for _, z := range newFuzzed() {
			z.send(t, protocol, packet)
		}
	})
}

// send has a packet come from the sandbox, and looks at what became of it.
func (z *fuzzed) send(t *testing.T, protocol tcpip.NetworkProtocolNumber, packet []byte) {
	pkt := tcpipstack.NewPacketBuffer(tcpipstack.PacketBufferOptions{Payload: buffer.MakeWithData(packet)})
	z.link.InjectInbound(protocol, pkt)
	pkt.DecRef()
	z.link.Drain()
	wantNoneForbidden(t, z.out, z.stack.Rules.Tier)
	if n := z.stack.flows.count(); n > mostTCP {
		t.Errorf("%d flows are held", n)
	}
	const often = 1 << 13 // looking at the memory stops everything
	if z.packets++; z.packets%often != 0 {
		return
	}
	var memory runtime.MemStats
	if runtime.ReadMemStats(&memory); memory.HeapInuse > mostFuzzed {
		runtime.GC()
		if runtime.ReadMemStats(&memory); memory.HeapInuse > mostFuzzed {
			t.Errorf("%d bytes are held after %d packets", memory.HeapInuse, z.packets)
		}
	}
}

// wantNoneForbidden looks at what was dialled by other means than the policy's.
func wantNoneForbidden(t *testing.T, o *outside, tier string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, text := range o.dialled {
		_, where, _ := strings.Cut(text, " ")
		a, err := netip.ParseAddr(where)
		if at, failed := netip.ParseAddrPort(where); failed == nil {
			a, err = at.Addr(), nil
		}
		switch {
		case tier == policy.TierNone, tier == policy.TierAllow && a != o.names["host.test"]:
			t.Errorf("tier %s dialled %s", tier, text)
		}
		if err != nil || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() {
			t.Errorf("dialled %s", text)
		}
	}
	o.dialled, o.refused = nil, nil
}

// segment begins a flow to an address.
func segment(to netip.AddrPort, protocol tcpip.TransportProtocolNumber) []byte {
	from := link.Sandbox4
	if to.Addr().Is6() {
		from = link.Sandbox6
	}
	body := make([]byte, header.TCPMinimumSize)
	binary.BigEndian.PutUint16(body, 40000)
	binary.BigEndian.PutUint16(body[2:], to.Port())
	switch protocol {
	case header.TCPProtocolNumber:
		body[12], body[13] = header.TCPMinimumSize/4<<4, byte(header.TCPFlagSyn)
		binary.BigEndian.PutUint16(body[14:], 65535)
	case header.UDPProtocolNumber:
		binary.BigEndian.PutUint16(body[4:], uint16(len(body)))
	case header.ICMPv4ProtocolNumber:
		body[0], body[1] = byte(header.ICMPv4Echo), 0
	default:
		body[0], body[1] = byte(header.ICMPv6EchoRequest), 0
	}
	return append(encodeIP(from, to.Addr(), protocol, len(body)), body...)
}

// mendHeader gives a packet the sandbox's address, its true length and a sum.
func mendHeader(packet []byte) {
	switch {
	case packet[0]>>4 == 4 && len(packet) >= header.IPv4MinimumSize:
		ip := header.IPv4(packet)
		packet[0] = 0x45
		ip.SetTotalLength(uint16(len(packet)))
		ip.SetSourceAddress(address(link.Sandbox4))
		ip.SetChecksum(0)
		ip.SetChecksum(^ip.CalculateChecksum())
	case packet[0]>>4 == 6 && len(packet) >= header.IPv6MinimumSize:
		ip := header.IPv6(packet)
		ip.SetPayloadLength(uint16(len(packet) - header.IPv6MinimumSize))
		ip.SetSourceAddress(address(link.Sandbox6))
	}
}

// mendSum gives the packet's content its sum.
func mendSum(packet []byte) {
	var body []byte
	var protocol tcpip.TransportProtocolNumber
	var sum uint16
	switch {
	case packet[0] == 0x45 && len(packet) >= header.IPv4MinimumSize:
		ip := header.IPv4(packet)
		protocol, body = ip.TransportProtocol(), packet[header.IPv4MinimumSize:]
		sum = header.PseudoHeaderChecksum(protocol, ip.SourceAddress(), ip.DestinationAddress(), uint16(len(body)))
	case packet[0]>>4 == 6 && len(packet) >= header.IPv6MinimumSize:
		ip := header.IPv6(packet)
		protocol, body = tcpip.TransportProtocolNumber(ip.NextHeader()), packet[header.IPv6MinimumSize:]
		sum = header.PseudoHeaderChecksum(protocol, ip.SourceAddress(), ip.DestinationAddress(), uint16(len(body)))
	default:
		return
	}
	at := map[tcpip.TransportProtocolNumber]int{
		header.TCPProtocolNumber: 16, header.UDPProtocolNumber: 6, header.ICMPv4ProtocolNumber: 2, header.ICMPv6ProtocolNumber: 2,
	}[protocol]
	if at == 0 || len(body) < at+2 {
		return
	}
	if protocol == header.ICMPv4ProtocolNumber {
		sum = 0
	}
	body[at], body[at+1] = 0, 0
	binary.BigEndian.PutUint16(body[at:], ^checksum.Checksum(body, sum))
}
