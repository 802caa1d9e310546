package stack

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	tcpipstack "gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"

	"claudebox/internal/network/link"
)

// wire has what a device writes, a packet in each datagram.
type wire struct {
	*device
	other int
}

func newWire(t *testing.T) wire {
	t.Helper()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(ends[0]); unix.Close(ends[1]) })
	return wire{&device{fd: ends[0], head: virtioHeader}, ends[1]}
}

// packets returns the content of what has been written, in order.
func (w wire) packets(t *testing.T) (contents []string, last []byte) {
	t.Helper()
	for b := make([]byte, 1<<20); ; {
		n, err := unix.Read(w.other, b)
		if err != nil {
			return contents, last
		}
		last = bytes.Clone(b[virtioHeader:n])
		contents = append(contents, string(header.TCP(last[header.IPv4MinimumSize:]).Payload()))
	}
}

// piece is a TCP segment to the sandbox, from a host outside.
type piece struct {
	port    uint16
	at, ack uint32
	flags   header.TCPFlags
	content string
}

func (s piece) packet() *tcpipstack.PacketBuffer {
	p := tcpipstack.NewPacketBuffer(tcpipstack.PacketBufferOptions{ReserveHeaderBytes: 100, Payload: buffer.MakeWithData([]byte(s.content))})
	from, to := address(netip.MustParseAddr("203.0.113.10")), address(link.Sandbox4)
	t := header.TCP(p.TransportHeader().Push(header.TCPMinimumSize))
	t.Encode(&header.TCPFields{SrcPort: 443, DstPort: s.port, SeqNum: s.at, AckNum: s.ack, DataOffset: header.TCPMinimumSize, Flags: s.flags, WindowSize: 1000})
	t.SetChecksum(header.PseudoHeaderChecksum(tcp.ProtocolNumber, from, to, uint16(len(t)+len(s.content))))
	ip := header.IPv4(p.NetworkHeader().Push(header.IPv4MinimumSize))
	ip.Encode(&header.IPv4Fields{TotalLength: uint16(p.Size()), TTL: 64, Protocol: uint8(tcp.ProtocolNumber), SrcAddr: from, DstAddr: to})
	ip.SetChecksum(^ip.CalculateChecksum())
	p.NetworkProtocolNumber = header.IPv4ProtocolNumber
	p.GSOOptions = tcpipstack.GSO{Type: tcpipstack.GSOTCPv4, NeedsCsum: true, CsumOffset: header.TCPChecksumOffset, MSS: 1000, L3HdrLen: header.IPv4MinimumSize}
	return p
}

func (w wire) send(segments ...piece) {
	for _, s := range segments {
		var list tcpipstack.PacketBufferList
		list.PushBack(s.packet())
		_, _ = w.WritePackets(list)
		list.Reset()
	}
}

const (
	ack  = header.TCPFlagAck
	push = header.TCPFlagAck | header.TCPFlagPsh
	fin  = header.TCPFlagAck | header.TCPFlagFin
)

func TestSegmentsThatFollowEachOtherAreJoined(t *testing.T) {
	for name, c := range map[string]struct {
		send []piece
		want string
	}{
		"in order":           {[]piece{{1, 10, 5, ack, "abc"}, {1, 13, 5, push, "de"}, {1, 15, 5, ack, "f"}}, "abcdef"},
		"a gap":              {[]piece{{1, 10, 5, ack, "abc"}, {1, 14, 5, ack, "de"}}, "abc de"},
		"sent again":         {[]piece{{1, 10, 5, ack, "abc"}, {1, 10, 5, ack, "abc"}}, "abc abc"},
		"two connections":    {[]piece{{1, 10, 5, ack, "abc"}, {2, 13, 5, ack, "de"}}, "abc de"},
		"another ACK":        {[]piece{{1, 10, 5, ack, "abc"}, {1, 13, 6, ack, "de"}}, "abc de"},
		"the end":            {[]piece{{1, 10, 5, ack, "abc"}, {1, 13, 5, fin, "de"}}, "abc de"},
		"an ACK in between":  {[]piece{{1, 10, 5, ack, "abc"}, {1, 13, 5, ack, ""}, {1, 13, 5, ack, "de"}}, "abc  de"},
		"round the sequence": {[]piece{{1, 1<<32 - 2, 5, ack, "abc"}, {1, 1, 5, ack, "de"}}, "abcde"},
		"more than Linux takes": {[]piece{
			{1, 1, 5, ack, "a"},
			{1, 2, 5, ack, "b"},
			{1, 3, 5, ack, "c"},
			{1, 4, 5, ack, "d"},
			{1, 5, 5, ack, "e"},
			{1, 6, 5, ack, "f"},
			{1, 7, 5, ack, "g"},
			{1, 8, 5, ack, "h"},
			{1, 9, 5, ack, "i"},
		}, "abcdefgh i"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			w.together(func() { w.send(c.send...) })
			if got, _ := w.packets(t); strings.Join(got, " ") != c.want {
				t.Errorf("written: %q; want %q", got, c.want)
			}
		})
	}
}

func TestOnlySegmentsSentTogetherWait(t *testing.T) {
	w := newWire(t)
	w.send(piece{1, 10, 5, ack, "abc"})
	if got, _ := w.packets(t); strings.Join(got, " ") != "abc" {
		t.Errorf("written: %q", got)
	}
	w.together(func() {
		w.together(func() { w.send(piece{1, 13, 5, ack, "de"}) })
		if got, _ := w.packets(t); strings.Join(got, " ") != "de" {
			t.Errorf("another connection waits for this one: %q", got)
		}
	})
}

func TestThePacketOfJoinedSegmentsHasValidHeaders(t *testing.T) {
	w := newWire(t)
	w.together(func() {
		w.send(piece{1, 10, 5, ack, strings.Repeat("a", 60_000)}, piece{1, 60_010, 5, push, strings.Repeat("b", 40_000)})
	})
	written, packet := w.packets(t)
	if len(written) != 1 || len(written[0]) != 100_000 {
		t.Fatalf("%d packets are written", len(written))
	}
	ip := header.IPv4(packet)
	if ip.CalculateChecksum() != 0xffff || binary.BigEndian.Uint16(ip[2:]) != 0 {
		t.Errorf("the IP header is %x", ip[:header.IPv4MinimumSize])
	}
	segment := header.TCP(packet[header.IPv4MinimumSize:])
	if segment.Flags() != push || segment.SequenceNumber() != 10 {
		t.Errorf("the TCP header is %x", segment[:header.TCPMinimumSize])
	}
	// The kernel's sum of the addresses, the protocol and a length of more than 16 bits.
	length := binary.BigEndian.AppendUint32(nil, uint32(len(segment)))
	want := checksum.Checksum(length, header.PseudoHeaderChecksum(tcp.ProtocolNumber, ip.SourceAddress(), ip.DestinationAddress(), 0))
	if segment.Checksum() != want {
		t.Errorf("the checksum begins as %x; want %x", segment.Checksum(), want)
	}
}

func TestSegmentsThatDoNotFitTogetherAreWrittenOneByOne(t *testing.T) {
	w := newWire(t)
	if err := unix.SetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 200_000); err != nil { // Linux doubles it
		t.Fatal(err)
	}
	long := strings.Repeat("a", 60_000)
	var all []piece
	for i := range uint32(mostCollected) {
		all = append(all, piece{1, i * uint32(len(long)), 5, ack, long})
	}
	w.together(func() { w.send(all...) })
	if got, _ := w.packets(t); len(got) < 2 || got[0] != long || got[1] != long {
		t.Errorf("%d packets are written; want as many as the socket has room for, each a segment", len(got))
	}
}
