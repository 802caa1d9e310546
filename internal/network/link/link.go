// Package link names what both ends of a sandbox's one interface have to agree on.
package link

import (
	"net"
	"net/netip"
)

// MTU is that of the interface: nothing between its ends needs smaller packets.
const MTU = 65520

// The network inside is the same on every machine, so that it reveals nothing about the host's. All its addresses
// lie in the ranges of package policy that no host on the internet has.
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

// The descriptor of a tun carries the interface's packets. The other end of a veth pair lies in a network namespace of
// its own, and its descriptor is a packet socket there (packet(7)).
const (
	Tun  Kind = 't'
	Veth Kind = 'v'
)

// Device is the interface's name inside.
const Device = "cb0"

// Options describe the network that the stage makes for a sandbox.
type Options struct {
	Internet bool     `json:"internet"`         // it has routes to everywhere, which the stack judges
	Publish  bool     `json:"publish"`          // ports of its loopback are reached from the stack
	Listen   []uint16 `json:"listen,omitempty"` // ports of its loopback that lead to the host's
	NoTun    bool     `json:"noTun,omitempty"`  // make a veth pair even if a tun is possible
}

// Network is a sandbox's network, or why there is none. Its message carries a descriptor for each end.
type Network struct {
	Kind  Kind   `json:"kind"`
	Ends  []End  `json:"ends"`
	Error string `json:"error,omitempty"`
}

// End is a descriptor by which a network is served.
type End struct {
	What What   `json:"what"`
	Port uint16 `json:"port,omitempty"` // of the other side, to which a listener leads
}

// What is what a descriptor is.
type What string

const (
	Interface What = "interface" // the other end of the sandbox's interface
	Inside    What = "inside"    // a listener on the sandbox's loopback
	Outside   What = "outside"   // a listener on the host's
	Log       What = "log"       // a file for the journal's lines
	// Socket6 is an unconnected IPv6 socket of the sandbox's network: by it the sandbox's [::1] is reached, which
	// packets from the interface cannot reach.
	Socket6 What = "socket6"
)

// Add adds an end to a network, and its descriptor to those of the other ends.
func (n *Network) Add(fds []int, what What, port uint16, fd int) []int {
	n.Ends = append(n.Ends, End{what, port})
	return append(fds, fd)
}
