package netfilter

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"claudebox/internal/netlink"
)

// routing is a filter of routing rules, for kernels without nf_tables. A rule
// alone does not hold in IPv4: a socket that names its interface
// (SO_BINDTODEVICE, IP_UNICAST_IF, IP_PKTINFO) gets a route on the link all
// the same (Linux, ip_route_output_key_hash_rcu). So no address but the
// gateway's can be resolved on the link, see settle.
type routing struct {
	socket  *netlink.Socket
	link    Link
	known   []netip.Prefix // have a rule
	settled bool
}

// Priorities of the rules. Those of the kernel are 0, for the namespace's own
// addresses, and 32766 for the main table (ip-rule(8)).
const (
	resolverPriority  = 5
	forbiddenPriority = 10
)

func (r *routing) load(_ []Rule, forbidden []netip.Prefix) error {
	for _, resolver := range Resolvers() {
		for _, protocol := range []byte{unix.IPPROTO_UDP, unix.IPPROTO_TCP} {
			if err := r.socket.Ask(resolverRule(resolver, protocol)); err != nil {
				return err
			}
		}
	}
	return r.replace(forbidden)
}

// replace adds what has no rule yet. Nothing is taken away. The network of the
// gateway has to wait until there is a route by it, which the kernel takes for
// reachable gateways only.
func (r *routing) replace(forbidden []netip.Prefix) error {
	for _, p := range forbidden {
		if slices.Contains(r.known, p) || !r.settled && p.Contains(r.link.Gateway) {
			continue
		}
		m := ruleFor(p, unix.FR_ACT_PROHIBIT, forbiddenPriority)
		if err := r.socket.Ask(m); err != nil {
			return err
		}
		r.known = append(r.known, p)
	}
	return nil
}

func resolverRule(resolver netip.Addr, protocol byte) netlink.Message {
	m := ruleFor(netip.PrefixFrom(resolver, resolver.BitLen()), unix.FR_ACT_TO_TBL, resolverPriority)
	m.Native(unix.FRA_TABLE, unix.RT_TABLE_MAIN)
	m.Bytes(unix.FRA_IP_PROTO, []byte{protocol})
	port := binary.NativeEndian.AppendUint16(nil, domain)
	m.Bytes(unix.FRA_DPORT_RANGE, append(port, port...))
	return m
}

// ruleFor begins with a struct fib_rule_hdr.
func ruleFor(to netip.Prefix, action byte, priority uint32) netlink.Message {
	family := byte(unix.AF_INET)
	if to.Addr().Is6() {
		family = unix.AF_INET6
	}
	m := netlink.New(unix.RTM_NEWRULE, unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL,
		family, byte(to.Bits()), 0, 0, 0, 0, 0, action, 0, 0, 0, 0)
	m.Bytes(unix.FRA_DST, to.Addr().AsSlice())
	m.Native(unix.FRA_PRIORITY, priority)
	return m
}

// settle forbids the gateway's network as well, pins the gateway to its
// address on the link, and has the kernel ask for no other.
func (r *routing) settle(forbidden []netip.Prefix) error {
	r.settled = true
	mac, err := net.ParseMAC(r.link.MAC)
	if err != nil {
		return err
	}
	index, err := indexOf(r.socket.FD(), r.link.Name)
	if err != nil {
		return err
	}
	// struct ndmsg
	header := binary.NativeEndian.AppendUint32([]byte{unix.AF_INET, 0, 0, 0}, index)
	header = append(binary.NativeEndian.AppendUint16(header, unix.NUD_PERMANENT), 0, 0)
	gateway := netlink.New(unix.RTM_NEWNEIGH, unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_REPLACE, header...)
	gateway.Bytes(unix.NDA_DST, r.link.Gateway.AsSlice())
	gateway.Bytes(unix.NDA_LLADDR, mac)
	return errors.Join(r.socket.Ask(unaskedNeighbours(index)), r.socket.Ask(gateway), r.replace(forbidden))
}

// Attributes of RTM_SETNEIGHTBL (linux/neighbour.h).
const (
	neighbourTableName   = 1 // NDTA_NAME
	neighbourTableParms  = 6 // NDTA_PARMS
	parameterIndex       = 1 // NDTPA_IFINDEX
	parameterAppProbes   = 9
	parameterUcastProbes = 10
	parameterMcastProbes = 11
)

// unaskedNeighbours switches ARP off for what is not pinned.
func unaskedNeighbours(index uint32) netlink.Message {
	m := netlink.New(unix.RTM_SETNEIGHTBL, unix.NLM_F_ACK, unix.AF_INET, 0, 0, 0) // struct ndtmsg
	m.Text(neighbourTableName, "arp_cache")
	m.Nest(neighbourTableParms, func() {
		m.Native(parameterIndex, index)
		for _, kind := range []uint16{parameterAppProbes, parameterUcastProbes, parameterMcastProbes} {
			m.Native(kind, 0)
		}
	})
	return m
}

// indexOf asks by ioctl, which every socket of the namespace can be asked by
// (netdevice(7)).
func indexOf(fd int, name string) (uint32, error) {
	request, err := unix.NewIfreq(name)
	if err == nil {
		err = unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, request)
	}
	if err != nil {
		return 0, err
	}
	return request.Uint32(), nil
}
