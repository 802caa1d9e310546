package stack

import (
	"context"
	"fmt"
	"net"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"

	"claudebox/internal/network/link"
)

// Publish carries a connection from the host to a port of the sandbox's 127.0.0.1. It returns when the connection is
// over. If the port cannot be reached there, it returns an error and leaves outer open: the server may listen on
// [::1]. If the sandbox has too many connections, it resets outer and returns nil.
func (s *Stack) Publish(outer *net.TCPConn, port uint16) error {
	queue := new(waiter.Queue)
	endpoint, err := s.dialInside(queue, port)
	if err != nil {
		return err
	}
	p := newPair(outer, &openFlow{})
	p.inner = &inner{gonet.NewTCPConn(queue, endpoint), endpoint, queue}
	if !s.flows.add(p.open) {
		p.breakOff()
		return nil
	}
	defer s.flows.remove(p.open)
	_ = p.run(s.ctx, s.bufferSize, nil) // no gate inspects it, so nothing is refused
	return nil
}

// dialInside connects to a port of the sandbox's 127.0.0.1. The stack has no loopback of its own: packets for that
// address leave by its interface, and the sandbox's kernel takes them (route_localnet, set by package stage).
func (s *Stack) dialInside(queue *waiter.Queue, port uint16) (tcpip.Endpoint, error) {
	ctx, cancel := context.WithTimeout(s.ctx, dialTime)
	defer cancel()
	endpoint, failed := s.gvisor.NewEndpoint(tcp.ProtocolNumber, header.IPv4ProtocolNumber, queue)
	if failed != nil {
		return nil, fmt.Errorf("%s", failed)
	}
	entry, connected := waiter.NewChannelEntry(waiter.WritableEvents)
	queue.EventRegister(&entry)
	defer queue.EventUnregister(&entry)
	if failed = endpoint.Bind(tcpip.FullAddress{NIC: nic, Addr: address(link.Server4)}); failed == nil {
		failed = endpoint.Connect(tcpip.FullAddress{NIC: nic, Addr: address(link.Loopback4), Port: port})
	}
	if _, started := failed.(*tcpip.ErrConnectStarted); started {
		select {
		case <-connected:
			failed = endpoint.LastError()
		case <-ctx.Done():
			failed = &tcpip.ErrTimeout{}
		}
	}
	if failed != nil {
		endpoint.Close()
		return nil, fmt.Errorf("%s", failed)
	}
	return endpoint, nil
}
