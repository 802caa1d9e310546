// Package target names what the tests' world holds. The world serves every
// target, the probe tries each of them from inside a sandbox.
package target

import "net/netip"

// Side is where a target's service runs.
type Side int

// The sides of the world.
const (
	Outside Side = iota // beyond the host: on its LAN, its VPN, the internet
	Host                // on the host itself
	Nowhere             // an address that leads to the service of another target
)

// Port is where services outside listen, HostPort where the host's own do.
const (
	Port     = 80
	HostPort = 8080
	EarPort  = 7777 // of a service on the LAN that hears multicast, broadcast and UDP-Lite

	ListenPort = 9999 // of the probe's own service
)

// Target is an address with a service at it, by TCP and UDP, that answers with
// the target's name.
type Target struct {
	Name string
	Addr netip.Addr // not valid for a gateway: the probe looks it up where it runs
	Side Side
	Port uint16
}

// Gateways are targets whose address is the sandbox's own default gateway: some
// set-ups give the host's loopback away there.
const (
	Gateway  = "gateway"
	Gateway6 = "gateway 6"
)

// Abstract is the abstract socket that the host listens on, as stream and as
// datagram socket: X11 and D-Bus have such ones.
const (
	Abstract         = "@claudebox-world"
	AbstractDatagram = "@claudebox-world-datagram"
)

// The addresses that the world's make-up needs by name.
const (
	HostLAN     = "192.168.77.10"
	HostVLAN    = "192.168.88.10"
	HostTailnet = "100.64.0.1"
	HostPublic  = "198.51.100.7"
	HostVPN     = "172.31.0.10"
	HostOther   = "203.0.113.77" // public, in no network of the host
	HostLAN6    = "2001:db8:77::10"
	HostULA     = "fd00:77::10"
	Router      = "192.168.77.1"
	Router6     = "fe80::1"
	Internet    = "203.0.113.10"
	Internet6   = "2001:db8:ffff::10"
	LANPeer     = "192.168.77.2"
	LANByNAT64  = "2001:db8:64::c0a8:4d02" // the same, behind a prefix that the router's resolver knows
	ULAPeer     = "fd00:77::5"
	Metadata    = "169.254.169.254"
	PublicDNS   = "203.0.113.53"
	PublicDNS6  = "2001:db8:ffff::53"
	TailnetDNS  = "100.100.100.100"
	StubDNS     = "127.0.0.53"

	// What the host is connected to later only, and is internet before.
	LaterLAN       = "198.51.100.200"
	LaterHost      = "198.51.100.193"
	LaterLAN6      = "2001:db8:99::5"
	LaterHost6     = "2001:db8:99::10"
	LaterVPN       = "203.0.113.200"
	LaterVPNRoutes = "203.0.113.192/26"
)

// All targets, those that a tier with a network is for first.
var All = []Target{
	outside("internet", Internet),
	outside("internet 6", Internet6),
	outside("internet resolver", PublicDNS),
	outside("later LAN", LaterLAN),
	outside("later LAN 6", LaterLAN6),
	outside("later VPN", LaterVPN),

	outside("LAN", LANPeer),
	outside("LAN router", Router),
	outside("second VLAN", "192.168.88.2"),
	outside("10/8", "10.1.2.3"),
	outside("172.16/12", "172.16.5.5"),
	outside("CGNAT", "100.64.0.5"),
	outside("tailnet resolver", TailnetDNS),
	outside("metadata", Metadata),
	outside("metadata, Azure", "168.63.129.16"),
	outside("metadata, Oracle", "192.0.0.192"),
	outside("benchmarks", "198.18.0.1"),
	outside("reserved", "240.0.0.1"),
	outside("public LAN", "198.51.100.1"),
	outside("public VPN", "198.51.100.130"),

	outside("LAN 6", "2001:db8:77::2"),
	outside("ULA", ULAPeer),
	outside("tailnet 6", "fd7a:115c:a1e0::5"),
	outside("metadata 6", "fd00:ec2::254"),
	outside("metadata 6, Oracle", "fd00:c1::a9fe:a9fe"),
	outside("link-local 6", Router6),
	outside("site-local 6", "fec0::5"),
	outside("NAT64 of LAN", "64:ff9b::c0a8:4d02"),
	outside("local NAT64", "64:ff9b:1::c0a8:4d02"),
	outside("6to4 of LAN", "2002:c0a8:4d02::1"),

	host("host loopback", "127.0.0.1"),
	host("host loopback 6", "::1"),
	host("host stub", StubDNS),
	host("host LAN", HostLAN),
	host("host VLAN", HostVLAN),
	host("host tailnet", HostTailnet),
	host("host public", HostPublic),
	host("host VPN", HostVPN),
	host("host public VPN", HostOther),
	host("host LAN 6", HostLAN6),
	host("host ULA", HostULA),
	host("host link-local 6", "fe80::10"),

	{Name: "0.0.0.0", Addr: netip.IPv4Unspecified(), Side: Nowhere, Port: HostPort},
	{Name: "::", Addr: netip.IPv6Unspecified(), Side: Nowhere, Port: HostPort},
	{Name: Gateway, Side: Nowhere, Port: HostPort},
	{Name: Gateway6, Side: Nowhere, Port: HostPort},
}

func outside(name, addr string) Target {
	return Target{Name: name, Addr: netip.MustParseAddr(addr), Side: Outside, Port: Port}
}

func host(name, addr string) Target {
	return Target{Name: name, Addr: netip.MustParseAddr(addr), Side: Host, Port: HostPort}
}

// On lists the targets of one side.
func On(side Side) []Target {
	var list []Target
	for _, t := range All {
		if t.Side == side {
			list = append(list, t)
		}
	}
	return list
}

// At is an address with a port, as one writes it.
func At(addr string, port uint16) string {
	return netip.AddrPortFrom(netip.MustParseAddr(addr), port).String()
}
