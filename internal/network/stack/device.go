package stack

import (
	"encoding/binary"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	tcpipstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"claudebox/internal/network/link"
)

// device is a [tcpipstack.LinkEndpoint] for the helper's end of the sandbox's interface. Before
// each packet stands a struct virtio_net_hdr. By it both ends leave out the checksum of
// the packet's content, and exchange TCP segments that are longer than a packet.
type device struct {
	fd   int
	raw  syscall.RawConn
	head int // bytes before the IP header
	to   tcpipstack.NetworkDispatcher
	lost func(error)
}

// newDevice takes over the descriptor of an interface. It calls lost when the interface is gone.
func newDevice(fd int, kind link.Kind, lost func(error)) (*device, error) {
	d := &device{fd: fd, head: virtioHeader, lost: lost}
	if kind == link.Veth {
		d.head += header.EthernetMinimumSize
	}
	raw, err := os.NewFile(uintptr(fd), "interface").SyscallConn()
	d.raw = raw
	return d, err
}

// virtioHeader is the size of a struct virtio_net_hdr (linux/virtio_net.h). Its fields:
// flags (1 byte), kind of segmentation (1), length of all headers (2), content of one
// segment (2), where the checksum's range begins (2), where the checksum stands in it (2).
const virtioHeader = 10

// longestPacket is the largest length of an IP packet.
const longestPacket = 1<<16 - 1

// Attach implements [tcpipstack.LinkEndpoint].
func (d *device) Attach(to tcpipstack.NetworkDispatcher) {
	if to == nil {
		return
	}
	d.to = to
	go func() { d.lost(d.read()) }()
}

// beginning is how many bytes of a packet are read into memory of their own. All headers are
// among them: the stack copies the whole piece of memory that has the headers.
const beginning = 128

// read delivers the sandbox's packets to the stack. It returns the error that ends reading.
func (d *device) read() error {
	head, begin, rest := make([]byte, d.head), buffer.NewViewSize(beginning), buffer.NewViewSize(1<<16)
	for {
		n, failed := 0, error(nil)
		err := d.raw.Read(func(fd uintptr) bool {
			n, failed = unix.Readv(int(fd), [][]byte{head, begin.AsSlice(), rest.AsSlice()})
			return failed != unix.EAGAIN
		})
		if err == nil && failed != unix.EINTR {
			err = failed
		}
		if err != nil {
			return err
		}
		if n -= d.head; n > 0 {
			rest = d.deliver(begin, rest, n)
			begin = buffer.NewViewSize(beginning)
		}
	}
}

// deliver gives the stack a packet of n bytes, which are in begin and rest. It returns the memory for the
// rest of the next packet. This is rest again, unless more than half of rest is filled: then the packet keeps it,
// as a copy would cost more.
func (d *device) deliver(begin, rest *buffer.View, n int) *buffer.View {
	protocol := tcpip.NetworkProtocolNumber(header.IPv4ProtocolNumber)
	if begin.AsSlice()[0]>>4 == header.IPv6Version {
		protocol = header.IPv6ProtocolNumber
	}
	begin.CapLength(min(n, beginning))
	packet, next := buffer.MakeWithView(begin), rest
	switch n -= beginning; {
	case n > rest.Size()/2:
		next = buffer.NewViewSize(rest.Size())
		rest.CapLength(n)
		_ = packet.Append(rest)
	case n > 0:
		_ = packet.Append(buffer.NewViewWithData(rest.AsSlice()[:n]))
	}
	p := tcpipstack.NewPacketBuffer(tcpipstack.PacketBufferOptions{Payload: packet})
	d.to.DeliverNetworkPacket(protocol, p)
	p.DecRef()
	return next
}

// WritePackets implements [tcpipstack.LinkEndpoint]. Packets that the kernel has no room for are dropped.
func (d *device) WritePackets(list tcpipstack.PacketBufferList) (int, tcpip.Error) {
	for i, p := range list.AsSlice() {
		if err := d.write(p); err != nil {
			return i, &tcpip.ErrNoBufferSpace{}
		}
	}
	return list.Len(), nil
}

func (d *device) write(p *tcpipstack.PacketBuffer) error {
	head := make([]byte, d.head)
	if d.head > virtioHeader {
		header.Ethernet(head[virtioHeader:]).Encode(&header.EthernetFields{
			SrcAddr: tcpip.LinkAddress(link.HelperMAC), DstAddr: tcpip.LinkAddress(link.SandboxMAC),
			Type: p.NetworkProtocolNumber,
		})
	}
	if o := p.GSOOptions; o.Type != tcpipstack.GSONone {
		describe(head, o, d.head-virtioHeader, p.HeaderSize(), p.Data().Size())
	}
	all := append(make([][]byte, 0, 32), head)
	for {
		if _, err := unix.Writev(d.fd, append(all, p.AsSlices()...)); err != unix.EINTR {
			return err
		}
	}
}

// describe fills the virtio header of a TCP segment: its checksum is incomplete, and a segment longer
// than the maximum is to be cut to pieces of that size.
func describe(head []byte, o tcpipstack.GSO, ethernet, headers, content int) {
	order := binary.NativeEndian
	order.PutUint16(head[2:], uint16(ethernet+headers))
	head[0] = unix.VIRTIO_NET_HDR_F_NEEDS_CSUM // so far the checksum covers the addresses alone
	order.PutUint16(head[6:], uint16(ethernet)+o.L3HdrLen)
	order.PutUint16(head[8:], o.CsumOffset)
	if content > int(o.MSS) {
		head[1] = unix.VIRTIO_NET_HDR_GSO_TCPV4
		if o.Type == tcpipstack.GSOTCPv6 {
			head[1] = unix.VIRTIO_NET_HDR_GSO_TCPV6
		}
		order.PutUint16(head[4:], o.MSS)
	}
}

// MTU implements [tcpipstack.LinkEndpoint].
func (d *device) MTU() uint32 { return link.MTU }

// Capabilities implements [tcpipstack.LinkEndpoint]. CapabilityTXChecksumOffload is not among them: with it
// the packets without [describe] would be sent without a checksum.
func (d *device) Capabilities() tcpipstack.LinkEndpointCapabilities {
	return tcpipstack.CapabilityRXChecksumOffload
}

// GSOMaxSize implements [tcpipstack.GSOEndpoint].
func (d *device) GSOMaxSize() uint32 { return longestPacket }

// SupportedGSO implements [tcpipstack.GSOEndpoint].
func (d *device) SupportedGSO() tcpipstack.SupportedGSO { return tcpipstack.HostGSOSupported }

// IsAttached implements [tcpipstack.LinkEndpoint].
func (d *device) IsAttached() bool { return d.to != nil }

// ARPHardwareType implements [tcpipstack.LinkEndpoint]. The stack looks up no neighbours, as there is only one.
func (d *device) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareNone }

// The other methods of [tcpipstack.LinkEndpoint] have nothing to do.

func (d *device) SetMTU(uint32)                             {}
func (d *device) MaxHeaderLength() uint16                   { return 0 }
func (d *device) LinkAddress() tcpip.LinkAddress            { return "" }
func (d *device) SetLinkAddress(tcpip.LinkAddress)          {}
func (d *device) Wait()                                     {}
func (d *device) AddHeader(*tcpipstack.PacketBuffer)        {}
func (d *device) ParseHeader(*tcpipstack.PacketBuffer) bool { return true }
func (d *device) Close()                                    {}
func (d *device) SetOnCloseAction(func())                   {}
