package world

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"claudebox/checks/promises/network/target"
)

// cables join the host with the world: the host's interface, and what stands at
// both ends. Further addresses of the world are beyond the router, on its lo.
var cables = []struct {
	name          string
	host, outside []string // addresses with the length of their network
}{
	{
		"eth0",
		[]string{target.HostLAN + "/24", target.HostLAN6 + "/64", target.HostULA + "/64", "fe80::10/64"},
		[]string{target.Router + "/24", target.LANPeer + "/24", "2001:db8:77::2/64", target.ULAPeer + "/64", target.Router6 + "/64"},
	},
	{"eth1", []string{target.HostVLAN + "/24"}, []string{"192.168.88.2/24"}},
	{"tailscale0", []string{target.HostTailnet + "/10", "fd7a:115c:a1e0::1/48"}, []string{"100.64.0.5/10", "fd7a:115c:a1e0::5/48"}},
	{"pub0", []string{target.HostPublic + "/26"}, []string{"198.51.100.1/26"}},
	{"wg0", []string{target.HostVPN + "/32", target.HostOther + "/32"}, nil},
	{"usb0", nil, nil}, // nothing is plugged in until [World.Roam]
}

// vpnTable is a routing table of its own, as VPNs keep one: its routes are in no
// listing of the main table.
const (
	vpnTable  = 52
	vpnRoutes = "198.51.100.128/26"
)

// quiet are settings of a namespace: no waiting for duplicate addresses, no
// look at where packets come from, echo sockets for the user, as distributions
// have it.
var quiet = map[string]string{
	"ipv6/conf/all/accept_dad":     "0",
	"ipv6/conf/default/accept_dad": "0",
	"ipv6/conf/all/accept_ra":      "0",
	"ipv6/conf/default/accept_ra":  "0",
	"ipv4/conf/all/rp_filter":      "0",
	"ipv4/conf/default/rp_filter":  "0",
	"ipv4/ping_group_range":        fmt.Sprint(os.Getgid(), os.Getgid()), // the only group that is mapped
	// Of what a namespace may always have. What a machine has for itself, bbr say, it
	// may take for a path where it is of no use.
	"ipv4/tcp_congestion_control": "reno",
	// The world sends more errors to one host than the kernel's limit allows.
	"ipv4/icmp_ratelimit": "0",
	"ipv6/icmp/ratelimit": "0",
}

func settle() error {
	for name, value := range quiet {
		if err := os.WriteFile("/proc/sys/net/"+name, []byte(value), 0); err != nil {
			return err
		}
	}
	return setUp("lo")
}

// connect lays the cables and gives both ends their addresses and routes.
func (w *World) connect() error {
	if err := errors.Join(w.outside.do(settle), w.host.do(settle)); err != nil {
		return err
	}
	if err := w.host.do(w.layCables); err != nil {
		return fmt.Errorf("host: %w", err)
	}
	if err := w.outside.do(w.plugIn); err != nil {
		return fmt.Errorf("outside: %w", err)
	}
	return w.host.do(routes)
}

func (w *World) layCables() error {
	for _, c := range cables {
		veth := &netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: c.name}, PeerName: c.name,
			PeerNamespace: netlink.NsFd(int(w.outside.file.Fd())),
		}
		if err := netlink.LinkAdd(veth); err != nil {
			return fmt.Errorf("make %s: %w", c.name, err)
		}
		if err := give(c.name, c.host); err != nil {
			return err
		}
	}
	return nil
}

func (w *World) plugIn() error {
	beyond := map[string]bool{}
	for _, t := range target.On(target.Outside) {
		beyond[t.Addr.String()] = true
	}
	for _, c := range cables {
		if err := give(c.name, c.outside); err != nil {
			return err
		}
		for _, a := range c.outside {
			delete(beyond, netip.MustParsePrefix(a).Addr().String())
		}
	}
	for _, a := range []string{target.PublicDNS, target.PublicDNS6, target.TailnetDNS, target.LANByNAT64} {
		beyond[a] = true
	}
	for a := range beyond {
		addr := netip.MustParseAddr(a)
		if err := give("lo", []string{netip.PrefixFrom(addr, addr.BitLen()).String()}); err != nil {
			return err
		}
	}
	w.giveSamples()
	return errors.Join(
		route(target.HostVPN+"/32", "", "wg0", unix.RT_TABLE_MAIN),
		route(target.HostOther+"/32", "", "wg0", unix.RT_TABLE_MAIN),
	)
}

// giveSamples puts an address of every range out of bounds beyond the router,
// where the kernel lets it be: none has a multicast address of its own.
func (w *World) giveSamples() {
	for _, t := range target.Samples() {
		isPlace := t.Addr.IsGlobalUnicast() || t.Addr.Is4() && !t.Addr.IsMulticast() && !t.Addr.IsLoopback()
		if isPlace && give("lo", []string{netip.PrefixFrom(t.Addr, t.Addr.BitLen()).String()}) == nil {
			w.samples = append(w.samples, t)
		}
	}
}

// routes are the host's: one way out by the LAN, and a VPN with a table of its
// own that is asked first.
func routes() error {
	for _, r := range []struct {
		to, via, dev string
		table        int
	}{
		{"0.0.0.0/0", target.Router, "eth0", unix.RT_TABLE_MAIN},
		{"::/0", target.Router6, "eth0", unix.RT_TABLE_MAIN},
		{target.TailnetDNS + "/32", "", "tailscale0", vpnTable},
		{vpnRoutes, "", "wg0", vpnTable},
	} {
		if err := route(r.to, r.via, r.dev, r.table); err != nil {
			return err
		}
	}
	rule := netlink.NewRule()
	rule.Priority, rule.Table = 5270, vpnTable
	return netlink.RuleAdd(rule)
}

// Roam connects the host to another LAN, where it has addresses and a service.
// Both had been somewhere in the internet.
func (w *World) Roam() error {
	err := w.host.do(func() error {
		return give("usb0", []string{target.LaterHost + "/26", target.LaterHost6 + "/64"})
	})
	if err != nil {
		return err
	}
	for _, a := range []string{target.LaterHost, target.LaterHost6} {
		t := target.Target{Name: "later host", Addr: netip.MustParseAddr(a), Port: target.HostPort}
		if err := w.serveTarget(w.host, t); err != nil {
			return err
		}
	}
	return nil
}

// Default routes of the host, for [World.Unplug].
const (
	IPv4 = "0.0.0.0/0"
	IPv6 = "::/0"
)

// Unplug takes a default route away: the host has no internet of that family.
func (w *World) Unplug(route string) error {
	return w.host.do(func() error {
		to, err := netlink.ParseIPNet(route)
		if err != nil {
			return err
		}
		return netlink.RouteDel(&netlink.Route{Dst: to})
	})
}

// splitRoutes are all of IPv4 but the private networks, as VPNs are told to route
// that leave the LAN alone.
var splitRoutes = strings.Fields(`0.0.0.0/5 8.0.0.0/7 11.0.0.0/8 12.0.0.0/6 16.0.0.0/4 32.0.0.0/3 64.0.0.0/2 128.0.0.0/3 160.0.0.0/5
	168.0.0.0/6 172.0.0.0/12 172.32.0.0/11 172.64.0.0/10 172.128.0.0/9 173.0.0.0/8 174.0.0.0/7 176.0.0.0/4 192.0.0.0/9 192.128.0.0/11
	192.160.0.0/13 192.169.0.0/16 192.170.0.0/15 192.172.0.0/14 192.176.0.0/12 192.192.0.0/10 193.0.0.0/8 194.0.0.0/7 196.0.0.0/6
	200.0.0.0/5 208.0.0.0/4`)

// SplitVPN routes all of the internet's IPv4 through the VPN, in dozens of pieces.
func (w *World) SplitVPN() error {
	return w.host.do(func() error {
		for _, to := range splitRoutes {
			if err := route(to, "", "wg0", unix.RT_TABLE_MAIN); err != nil {
				return err
			}
		}
		return nil
	})
}

// SpreadOut gives the host two ways to the internet at once (ECMP): its router,
// and another machine of the LAN.
func (w *World) SpreadOut() error {
	return w.host.do(func() error {
		device, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		everywhere, err := netlink.ParseIPNet(IPv4)
		if err != nil {
			return err
		}
		hop := func(gateway string) *netlink.NexthopInfo {
			return &netlink.NexthopInfo{LinkIndex: device.Attrs().Index, Gw: netip.MustParseAddr(gateway).AsSlice()}
		}
		return netlink.RouteReplace(&netlink.Route{Dst: everywhere, MultiPath: []*netlink.NexthopInfo{hop(target.Router), hop(target.LANPeer)}})
	})
}

// RaiseVPN adds a route to what had been internet, in the VPN's own table.
func (w *World) RaiseVPN() error {
	return w.host.do(func() error { return route(target.LaterVPNRoutes, "", "wg0", vpnTable) })
}

func route(to, via, dev string, table int) error {
	link, err := netlink.LinkByName(dev)
	if err != nil {
		return err
	}
	prefix, err := netlink.ParseIPNet(to)
	if err != nil {
		return err
	}
	r := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: prefix, Table: table}
	if via == "" {
		r.Scope = netlink.SCOPE_LINK
	} else {
		r.Gw = netip.MustParseAddr(via).AsSlice()
	}
	if err := netlink.RouteAdd(r); err != nil {
		return fmt.Errorf("route to %s: %w", to, err)
	}
	return nil
}

// give brings an interface up with addresses.
func give(name string, addresses []string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("%s up: %w", name, err)
	}
	for _, a := range addresses {
		addr, err := netlink.ParseAddr(a)
		if err != nil {
			return err
		}
		if addr.IP.To4() == nil {
			addr.Flags = unix.IFA_F_NODAD
		}
		if err := netlink.AddrAdd(link, addr); err != nil {
			return fmt.Errorf("%s at %s: %w", a, name, err)
		}
	}
	return nil
}

func setUp(name string) error { return give(name, nil) }
