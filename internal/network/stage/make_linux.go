package stage

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"claudebox/internal/network/link"
)

// network is a network with the descriptors of its ends.
type network struct {
	link.Network
	fds []int
}

func (n *network) add(what link.What, port uint16, fd int) { n.fds = n.Add(n.fds, what, port, fd) }

// makeNetwork makes the network of the network namespace that the calling process is in. The process must
// have all capabilities over that namespace, and keep its thread.
func makeNetwork(o link.Options) (n network, err error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return n, fmt.Errorf("speak to the kernel: %w", err)
	}
	defer h.Close()
	if err := raise(h, "lo"); err != nil {
		return n, err
	}
	device := -1
	if n.Kind, device, err = makeDevice(h, o.NoTun); err != nil {
		return n, err
	}
	n.add(link.Interface, 0, device)
	if err := configure(h, n.Kind, o); err != nil {
		return n, err
	}
	for _, port := range o.Listen {
		if err := n.listen(port); err != nil {
			return n, err
		}
	}
	for i := 0; o.Publish && i < mostInside6; i++ {
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil { // there is no IPv6
			break
		}
		n.add(link.Socket6, 0, fd)
	}
	return n, nil
}

// mostInside6 is how many connections to the sandbox's [::1] there can be at the same time.
const mostInside6 = 64

// raise brings an interface up.
func raise(h *netlink.Handle, name string) error {
	l, err := h.LinkByName(name)
	if err == nil {
		err = h.LinkSetUp(l)
	}
	if err != nil {
		return fmt.Errorf("bring %s up: %w", name, err)
	}
	return nil
}

// makeDevice makes a tun, or a veth pair if that fails.
func makeDevice(h *netlink.Handle, noTun bool) (link.Kind, int, error) {
	failed := errors.New("not wanted")
	if !noTun {
		fd, err := makeTun()
		if err == nil {
			return link.Tun, fd, nil
		}
		failed = err
	}
	fd, err := makeVeth(h)
	if err != nil {
		return 0, -1, fmt.Errorf("make a network interface: a tun: %w; a veth pair: %w", failed, err)
	}
	return link.Veth, fd, nil
}

func makeTun() (int, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: "/dev/net/tun", Err: err}
	}
	request, err := unix.NewIfreq(link.Device)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		unix.Close(fd)
		return -1, os.NewSyscallError("ioctl TUNSETIFF", err)
	}
	return fd, nil
}

// peer is the name of the other end of a veth pair.
const peer = "cb1"

// makeVeth makes a veth pair. Its other end is in a network namespace without a process, which lasts as long
// as the packet socket in it is open. This is what makeVeth returns.
func makeVeth(h *netlink.Handle) (int, error) {
	here, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open the network namespace: %w", err)
	}
	defer unix.Close(here)
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return -1, fmt.Errorf("make a second network namespace: %w", err)
	}
	there, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if back := unix.Setns(here, unix.CLONE_NEWNET); err != nil || back != nil {
		return -1, errors.Join(err, back)
	}
	defer unix.Close(there)
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = link.Device, link.MTU, link.SandboxMAC
	pair := &netlink.Veth{
		LinkAttrs: attrs, PeerName: peer, PeerHardwareAddr: link.HelperMAC, PeerMTU: link.MTU,
		PeerNamespace: netlink.NsFd(there),
	}
	if err := h.LinkAdd(pair); err != nil {
		return -1, err
	}
	if err := unix.Setns(there, unix.CLONE_NEWNET); err != nil {
		return -1, err
	}
	fd, err := packetSocket()
	if back := unix.Setns(here, unix.CLONE_NEWNET); back != nil {
		err = errors.Join(err, back)
	}
	return fd, err
}

// packetSocket returns a packet socket on the other end of a veth pair. The calling thread is in the network
// namespace of that end. The socket receives only packets of the sandbox.
func packetSocket() (int, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return -1, err
	}
	defer h.Close()
	l, err := h.LinkByName(peer)
	if err == nil {
		err = h.LinkSetIP6AddrGenMode(l, genModeNone)
	}
	if err == nil {
		err = h.LinkSetUp(l)
	}
	if err != nil {
		return -1, err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	err = errors.Join(
		os.NewSyscallError("PACKET_IGNORE_OUTGOING",
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)),
		os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrLinklayer{
			Ifindex: l.Attrs().Index, Protocol: everyProtocol,
		})),
	)
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// everyProtocol is ETH_P_ALL in the order of the network (packet(7)).
const everyProtocol = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8

// genModeNone keeps the kernel from giving an interface an IPv6 address (IN6_ADDR_GEN_MODE_NONE).
const genModeNone = 1

// configure gives the interface its addresses and routes, and sets options of the network namespace. Those in
// /proc/sys stay as they are if that is read-only, as in a container.
func configure(h *netlink.Handle, kind link.Kind, o link.Options) error {
	gid := strconv.Itoa(os.Getgid())
	_ = set("ipv4/ping_group_range", gid+" "+gid) // only ids that are mapped
	_ = set("ipv4/ip_unprivileged_port_start", "0")
	// A machine's default may be bbr. Over a link without loss or delay, bbr spends most of its time on timers.
	_ = set("ipv4/tcp_congestion_control", "reno")
	l, err := h.LinkByName(link.Device)
	if err != nil {
		return fmt.Errorf("find %s: %w", link.Device, err)
	}
	if o.Publish {
		if err := routeLocalnet(l.Attrs().Index); err != nil {
			return fmt.Errorf("let ports of the sandbox's loopback be reached: %w", err)
		}
	}
	v6 := h.LinkSetIP6AddrGenMode(l, genModeNone) == nil
	if err := h.LinkSetMTU(l, link.MTU); err != nil {
		return fmt.Errorf("set the MTU of %s: %w", link.Device, err)
	}
	if err := h.LinkSetUp(l); err != nil {
		return fmt.Errorf("bring %s up: %w", link.Device, err)
	}
	if err := addFamily(h, l.Attrs().Index, kind, o.Internet, link.Sandbox4, link.Server4); err != nil {
		return err
	}
	if !v6 { // IPv6 is switched off in this kernel
		return nil
	}
	return addFamily(h, l.Attrs().Index, kind, o.Internet, link.Sandbox6, link.Server6)
}

// routeLocalnet lets a device carry packets for 127.0.0.0/8. It sets net.ipv4.conf.DEVICE.route_localnet, but by
// netlink, which works if /proc/sys is read-only.
func routeLocalnet(device int) error {
	const inetConf, setting = 1, 26 // linux/if_link.h, IFLA_INET_CONF; linux/ip.h, IPV4_DEVCONF_ROUTE_LOCALNET
	request, message := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK), nl.NewIfInfomsg(unix.AF_UNSPEC)
	message.Index = int32(device)
	families := nl.NewRtAttr(unix.IFLA_AF_SPEC, nil)
	families.AddRtAttr(unix.AF_INET, nil).AddRtAttr(inetConf, nil).AddRtAttr(setting, nl.Uint32Attr(1))
	request.AddData(message)
	request.AddData(families)
	_, err := request.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// set sets an option below /proc/sys/net.
func set(name, value string) error {
	return os.WriteFile("/proc/sys/net/"+name, []byte(value), 0)
}

// addFamily adds the address and the routes of IPv4 or IPv6, whichever own and server belong to.
func addFamily(h *netlink.Handle, device int, kind link.Kind, internet bool, own, server netip.Addr) error {
	bits := own.BitLen()
	address := &netlink.Addr{
		IPNet: &net.IPNet{IP: own.AsSlice(), Mask: net.CIDRMask(bits, bits)},
		Flags: unix.IFA_F_NODAD,
	}
	l := &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: device, Name: link.Device}}
	if err := h.AddrAdd(l, address); err != nil {
		return fmt.Errorf("give %s the address %s: %w", link.Device, own, err)
	}
	if kind == link.Veth { // the stack does not answer ARP or neighbour solicitations
		neighbour := &netlink.Neigh{
			LinkIndex: device, State: netlink.NUD_PERMANENT, IP: server.AsSlice(),
			HardwareAddr: link.HelperMAC,
		}
		if err := h.NeighAdd(neighbour); err != nil {
			return fmt.Errorf("name the neighbour of %s: %w", link.Device, err)
		}
	}
	gateway := &netlink.Route{
		LinkIndex: device, Dst: &net.IPNet{IP: server.AsSlice(), Mask: net.CIDRMask(bits, bits)},
		Scope: netlink.SCOPE_LINK,
	}
	if err := h.RouteAdd(gateway); err != nil {
		return fmt.Errorf("add a route to %s: %w", server, err)
	}
	if !internet {
		return nil
	}
	everywhere := &netlink.Route{
		LinkIndex: device,
		Dst:       &net.IPNet{IP: make([]byte, bits/8), Mask: net.CIDRMask(0, bits)}, Gw: server.AsSlice(),
	}
	if err := h.RouteAdd(everywhere); err != nil {
		return fmt.Errorf("add the default route: %w", err)
	}
	return nil
}

// backlog is how many connections may wait to be accepted; the kernel bounds
// it by net.core.somaxconn.
const backlog = 4096

// listen listens on a port of the sandbox's loopback, by IPv4 and, if there is any, IPv6.
func (n *network) listen(port uint16) error {
	v4, err := listener(unix.AF_INET, &unix.SockaddrInet4{Port: int(port), Addr: link.Loopback4.As4()})
	if err != nil {
		return fmt.Errorf("listen on port %d of the sandbox: %w", port, err)
	}
	n.add(link.Inside, port, v4)
	v6, err := listener(unix.AF_INET6, &unix.SockaddrInet6{Port: int(port), Addr: netip.IPv6Loopback().As16()})
	if err == nil {
		n.add(link.Inside, port, v6)
	}
	return nil
}

// listener returns a socket that listens on an address.
func listener(domain int, at unix.Sockaddr) (int, error) {
	fd, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if domain == unix.AF_INET6 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
	}
	// A machine's default may be bbr. Over a loopback, bbr spends most of its time on timers.
	_ = unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno")
	if err := errors.Join(unix.Bind(fd, at), unix.Listen(fd, backlog)); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
