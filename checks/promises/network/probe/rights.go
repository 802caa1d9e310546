package main

import (
	"net"
	"os"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// rights are attempts that need CAP_NET_ADMIN over the network namespace.
var rights = []attempt{
	{"add a route", func(out outlet) error {
		return netlink.RouteAdd(&netlink.Route{LinkIndex: out.index, Dst: network("192.168.77.0/24"), Scope: netlink.SCOPE_LINK, Priority: 7})
	}},
	{"delete the default route", func(outlet) error {
		return netlink.RouteDel(&netlink.Route{Dst: network("0.0.0.0/0")})
	}},
	{"add a routing rule", func(outlet) error {
		rule := netlink.NewRule()
		rule.Priority, rule.Table = 1, unix.RT_TABLE_LOCAL
		return netlink.RuleAdd(rule)
	}},
	{"add an address", func(out outlet) error {
		return netlink.AddrAdd(out.link(), &netlink.Addr{IPNet: network("192.168.77.99/24")})
	}},
	{"add a neighbour", func(out outlet) error {
		return netlink.NeighAdd(&netlink.Neigh{
			LinkIndex: out.index, IP: net.IPv4(192, 168, 77, 98), HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 1}, State: netlink.NUD_PERMANENT,
		})
	}},
	{"take the interface down", func(out outlet) error { return netlink.LinkSetDown(out.link()) }},
	{"take the interface up", func(out outlet) error { return netlink.LinkSetUp(out.link()) }},
	{"add an interface", func(outlet) error {
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "out0"}, PeerName: "out1"})
	}},
	{"list the filter", func(outlet) error {
		c, err := nftables.New()
		if err != nil {
			return err
		}
		_, err = c.ListTables()
		return err
	}},
	{"flush the filter", filter(func(c *nftables.Conn) { c.FlushRuleset() })},
	{"add a filter that accepts first", filter(func(c *nftables.Conn) {
		table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "mine"})
		chain := c.AddChain(&nftables.Chain{
			Name: "out", Table: table, Type: nftables.ChainTypeFilter,
			Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityRaw,
		})
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}})
	})},
	{"translate addresses", filter(func(c *nftables.Conn) {
		table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "nat"})
		c.AddChain(&nftables.Chain{
			Name: "out", Table: table, Type: nftables.ChainTypeNAT,
			Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest,
		})
	})},
	{"set net.ipv4.ip_forward", sysctl("ipv4/ip_forward", "1")},
	{"set net.ipv4.conf.all.route_localnet", sysctl("ipv4/conf/all/route_localnet", "1")},
	{"set net.ipv4.conf.all.arp_ignore", sysctl("ipv4/conf/all/arp_ignore", "0")},
	{"set net.ipv6.conf.all.seg6_enabled", sysctl("ipv6/conf/all/seg6_enabled", "1")},
	{"set net.ipv4.ping_group_range", sysctl("ipv4/ping_group_range", "1 0")},
	{"SO_MARK", option(unix.SOL_SOCKET, unix.SO_MARK, 1)},
	{"IP_TRANSPARENT", option(unix.IPPROTO_IP, unix.IP_TRANSPARENT, 1)},
	{"IP_XFRM_POLICY", func(outlet) error { return setsockopt(unix.IPPROTO_IP, unix.IP_XFRM_POLICY, make([]byte, 168)) }},
	{"replace iptables' rules", func(outlet) error {
		const replace = 64 // IPT_SO_SET_REPLACE
		return setsockopt(unix.IPPROTO_IP, replace, make([]byte, 96))
	}},
	{"TUNSETIFF", tunnel},
	{"TUNSETIFF, on a device of my own", func(outlet) error {
		if err := unix.Mknod("/tmp/tun", unix.S_IFCHR|0o666, int(unix.Mkdev(10, 200))); err != nil {
			return err
		}
		return tunnelAt("/tmp/tun")
	}},
}

func network(text string) *net.IPNet {
	parsed, err := netlink.ParseIPNet(text)
	if err != nil {
		panic(err)
	}
	return parsed
}

func (out outlet) link() netlink.Link {
	return &netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: out.name, Index: out.index}}
}

func filter(change func(*nftables.Conn)) func(outlet) error {
	return func(outlet) error {
		c, err := nftables.New()
		if err != nil {
			return err
		}
		change(c)
		return c.Flush()
	}
}

func sysctl(name, value string) func(outlet) error {
	return func(outlet) error { return os.WriteFile("/proc/sys/net/"+name, []byte(value), 0) }
}

func option(level, name, value int) func(outlet) error {
	return func(outlet) error {
		return withSocket(unix.AF_INET, unix.SOCK_DGRAM, 0, func(fd int) error { return unix.SetsockoptInt(fd, level, name, value) })
	}
}

// setsockopt is for options whose value is a structure; an all-zero one is
// enough to see whether the kernel looks at it.
func setsockopt(level, name int, value []byte) error {
	return withSocket(unix.AF_INET, unix.SOCK_DGRAM, 0, func(fd int) error {
		return unix.SetsockoptString(fd, level, name, string(value))
	})
}

func tunnel(outlet) error { return tunnelAt("/dev/net/tun") }

func tunnelAt(device string) error {
	fd, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("out%d")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	return unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
}

func withSocket(family, kind, protocol int, use func(fd int) error) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return use(fd)
}

// call is a system call whose arguments make no sense: where it is allowed, the
// kernel complains of them, and not that it is forbidden.
func call(number uintptr) func(outlet) error {
	return func(outlet) error {
		_, _, errno := unix.Syscall6(number, 0, 0, 0, 0, 0, 0)
		if errno != 0 {
			return errno
		}
		return nil
	}
}
