package stack

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	tcpipstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"claudebox/internal/network/link"
)

// device is the helper's end of the sandbox's interface. It waits by Go's poller: the library's own endpoint keeps a
// thread for that, and each packet then costs the change of a thread.
type device struct {
	*channel.Endpoint // its queue is not used
	fd                int
	raw               syscall.RawConn
	head              int // bytes before the IP header
}

// newDevice takes over the descriptor of an interface.
func newDevice(fd int, kind link.Kind) (*device, error) {
	d := &device{Endpoint: channel.New(0, link.MTU, ""), fd: fd}
	d.LinkEPCapabilities = tcpipstack.CapabilityRXChecksumOffload
	if kind == link.Veth {
		d.head = header.EthernetMinimumSize
	}
	raw, err := os.NewFile(uintptr(fd), "interface").SyscallConn()
	d.raw = raw
	return d, err
}

// beginning is how many bytes of a packet are in memory of their own. All headers are among them: the stack copies the
// whole piece of memory that has the headers.
const beginning = 128

// deliver gives the stack the sandbox's packets. It returns the error that ends reading.
func (d *device) deliver() error {
	for whole := make([]byte, d.head+1<<16); ; {
		n, failed := 0, error(nil)
		err := d.raw.Read(func(fd uintptr) bool {
			n, failed = unix.Read(int(fd), whole)
			return failed != unix.EAGAIN
		})
		switch {
		case err != nil:
			return err
		case failed == unix.EINTR || failed == nil && n <= d.head:
			continue
		case failed != nil:
			return failed
		}
		protocol, ip := tcpip.NetworkProtocolNumber(ipv4.ProtocolNumber), whole[d.head:n]
		if ip[0]>>4 == header.IPv6Version {
			protocol = ipv6.ProtocolNumber
		}
		content := buffer.MakeWithData(ip[:min(len(ip), beginning)])
		if len(ip) > beginning {
			_ = content.Append(buffer.NewViewWithData(ip[beginning:]))
		}
		p := tcpipstack.NewPacketBuffer(tcpipstack.PacketBufferOptions{Payload: content})
		d.InjectInbound(protocol, p)
		p.DecRef()
	}
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
	frame := make([][]byte, 0, 32)
	if d.head > 0 {
		ethernet := header.Ethernet(make([]byte, d.head))
		ethernet.Encode(&header.EthernetFields{
			SrcAddr: tcpip.LinkAddress(link.HelperMAC), DstAddr: tcpip.LinkAddress(link.SandboxMAC),
			Type: p.NetworkProtocolNumber,
		})
		frame = append(frame, ethernet)
	}
	frame = append(frame, p.AsSlices()...)
	for {
		if _, err := unix.Writev(d.fd, frame); err != unix.EINTR {
			return err
		}
	}
}
