package attack

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"claudebox/internal/network/link"
)

// patience bounds what one connection may take: a rule may drop its packets.
const patience = 500 * time.Millisecond

// byFull says that a way is open in tier full, the host's own network.
func byFull(tier string) string {
	if tier == "full" {
		return "network: full"
	}
	return ""
}

var networkTries = []try{
	{
		name: "services on loopback", gets: "databases and the like that listen on 127.0.0.1", open: byFull,
		run: func(t Targets) string { return speaks("tcp", t, t.Loopback) },
	},
	{
		name: "services of this machine", gets: "the same at its other addresses", open: byFull,
		run: func(t Targets) string { return speaks("tcp", t, t.Addresses...) },
	},
	{name: "interfaces", gets: "the names and addresses of your networks", open: byFull, run: interfaces},
	{
		name: "abstract sockets", gets: "X11 and D-Bus, whatever is mounted",
		run: func(t Targets) string { return speaks("unix", t, "@"+t.Abstract) },
	},
	{
		name: "a socket's path", gets: "a service that listens in a folder of the host",
		run: func(t Targets) string { return speaks("unix", t, t.Socket) },
	},
}

// speaks connects to each address and gives the first that answers with the
// canary.
func speaks(network string, t Targets, addresses ...string) string {
	for _, address := range addresses {
		conn, err := net.DialTimeout(network, address, patience)
		if err != nil {
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(patience))
		said, _ := io.ReadAll(io.LimitReader(conn, int64(len(t.Canary))))
		conn.Close()
		if string(said) == t.Canary {
			return address
		}
	}
	return ""
}

// interfaces finds one of the host's: its address is among the targets', and
// not by chance the one that every sandbox has.
func interfaces(t Targets) string {
	found, _ := net.InterfaceAddrs()
	for _, address := range found {
		ip, _, _ := strings.Cut(address.String(), "/")
		if at, err := netip.ParseAddr(ip); err == nil && (at == link.Sandbox4 || at == link.Sandbox6) {
			continue
		}
		for _, target := range t.Addresses {
			if host, _, err := net.SplitHostPort(target); err == nil && host == ip {
				return ip
			}
		}
	}
	return ""
}
