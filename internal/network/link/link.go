// Package link makes a sandbox's one interface, cb0, and hands the other end
// of it out as a descriptor. It works inside the namespaces of the sandbox, with
// all capabilities over them, before anything of the agent runs.
package link

import (
	"net"
	"net/netip"
)

// MTU is that of the interface: nothing between its ends needs smaller packets.
const MTU = 65520

// The network inside is the same on every machine, so that it tells nothing of
// the host's. Its addresses are forbidden ones: nobody outside has them.
var (
	Sandbox4  = netip.MustParseAddr("192.0.2.2")
	Sandbox6  = netip.MustParseAddr("2001:db8:cb::2")
	Server4   = netip.MustParseAddr("169.254.1.1") // the stack itself: the gateway, and the resolver
	Server6   = netip.MustParseAddr("fd00:cb::53")
	Loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})
)

// The two ends of a veth pair.
var (
	SandboxMAC = net.HardwareAddr{0x02, 0xcb, 0, 0, 0, 2}
	HelperMAC  = net.HardwareAddr{0x02, 0xcb, 0, 0, 0, 1}
)

// Kind is how an interface is made.
type Kind byte

// A tun is a descriptor whose packets are those of the interface. Of a veth
// pair the other end lies in a network namespace of its own, and the descriptor
// is a packet socket there, with a header for segmentation (packet(7),
// PACKET_VNET_HDR).
const (
	Tun  Kind = 't'
	Veth Kind = 'v'
)
