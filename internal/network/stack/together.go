package stack

import (
	"bytes"
	"slices"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	tcpipstack "gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"

	"claudebox/internal/linux/release"
	"claudebox/internal/network/link"
)

// The stack makes no packet longer than IP's 64 KiB. Linux takes longer ones, and a long packet costs it hardly
// more than a short one: downloads from this machine are faster by a fifth when segments are joined.

// canJoin reports whether Linux takes TCP segments of any length from an interface: over IPv4 since 6.3 ("BIG TCP").
// Over a veth pair it would cut them up again.
func canJoin(kind link.Kind) bool { return kind == link.Tun && release.IsAtLeast(6, 3) }

// mostCollected bounds the segments that are joined: Linux makes no packet of more than 512 KiB (GSO_MAX_SIZE).
const mostCollected = 8

// collected are TCP segments of one connection that are to be written. Each begins where the one before it ends.
type collected struct {
	segments []*tcpipstack.PacketBuffer
	content  int
}

// together calls send. The TCP segments with data that the stack sends meanwhile are written
// when send has returned, or earlier; those that follow each other in a connection are joined to one packet.
func (d *device) together(send func()) {
	d.mu.Lock()
	d.collecting++
	d.mu.Unlock()
	send()
	d.mu.Lock()
	d.collecting--
	d.writeCollected()
	d.mu.Unlock()
}

// isData reports whether a packet is an IPv4 TCP segment with data and without a flag that has a meaning of its own.
func isData(p *tcpipstack.PacketBuffer) bool {
	return p.GSOOptions.Type == tcpipstack.GSOTCPv4 && p.Data().Size() > 0 &&
		tcpOf(p).Flags()&^header.TCPFlagPsh == header.TCPFlagAck
}

func tcpOf(p *tcpipstack.PacketBuffer) header.TCP   { return p.TransportHeader().Slice() }
func ipv4Of(p *tcpipstack.PacketBuffer) header.IPv4 { return p.NetworkHeader().Slice() }

// collect adds a segment to those collected, which it writes first if the segment cannot be joined to them.
func (d *device) collect(p *tcpipstack.PacketBuffer) {
	if n := len(d.segments); n == mostCollected || n > 0 && !follows(d.segments[n-1], p) {
		d.writeCollected()
	}
	d.segments, d.content = append(d.segments, p.IncRef()), d.content+p.Data().Size()
}

// follows reports whether a segment begins where another one of the same connection ends, and their headers
// say the same apart from that.
func follows(last, p *tcpipstack.PacketBuffer) bool {
	a, b := tcpOf(last), tcpOf(p)
	return ipv4Of(last).SourceAddress() == ipv4Of(p).SourceAddress() &&
		ipv4Of(last).DestinationAddress() == ipv4Of(p).DestinationAddress() &&
		a.SourcePort() == b.SourcePort() && a.DestinationPort() == b.DestinationPort() &&
		b.SequenceNumber() == a.SequenceNumber()+uint32(last.Data().Size()) &&
		a.AckNumber() == b.AckNumber() && a.WindowSize() == b.WindowSize() && bytes.Equal(a.Options(), b.Options())
}

// writeCollected writes what is collected. If the kernel has no room for one long packet, it writes
// each segment by itself.
func (d *device) writeCollected() {
	if len(d.segments) < 2 || d.writeJoined() != nil {
		for _, p := range d.segments {
			_ = d.write(p) // the stack sends again what is lost
		}
	}
	for _, p := range d.segments {
		p.DecRef()
	}
	clear(d.segments)
	d.collected = collected{segments: d.segments[:0]}
}

func (d *device) writeJoined() error {
	first := d.segments[0]
	head := joinedHeader(first, d.segments[len(d.segments)-1], d.content)
	pieces := [][]byte{head}
	for _, p := range d.segments {
		pieces = append(pieces, contentOf(p)...)
	}
	return d.writePieces(first, len(head), d.content, pieces)
}

// joinedHeader returns the IP and TCP header of one packet for the content of all segments from first to last.
// Its IP length is 0: Linux takes the true one from the packet (iph_totlen in linux/ip.h).
func joinedHeader(first, last *tcpipstack.PacketBuffer, content int) []byte {
	head := slices.Concat([]byte(ipv4Of(first)), tcpOf(first))
	ip := header.IPv4(head)
	ip.SetTotalLength(0)
	ip.SetChecksum(0)
	ip.SetChecksum(^ip.CalculateChecksum())
	t := header.TCP(head[len(ipv4Of(first)):])
	t.SetFlags(uint8(tcpOf(last).Flags()))
	length := len(t) + content
	sum := header.PseudoHeaderChecksum(tcp.ProtocolNumber, ip.SourceAddress(), ip.DestinationAddress(), uint16(length))
	t.SetChecksum(checksum.Combine(sum, uint16(length>>16)))
	return head
}

// contentOf returns the pieces of a packet without its headers.
func contentOf(p *tcpipstack.PacketBuffer) [][]byte {
	pieces, headers := p.AsSlices(), p.HeaderSize()
	for len(pieces[0]) <= headers {
		headers, pieces = headers-len(pieces[0]), pieces[1:]
	}
	pieces[0] = pieces[0][headers:]
	return pieces
}
