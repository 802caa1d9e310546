package attack

import (
	"io"
	"net"
	"strings"
	"time"

	"claudebox/internal/network/link"
)

// patience bounds connecting, and then reading: a firewall may drop the packets without an answer.
const patience = 500 * time.Millisecond

// fullTries succeed in tier full, the host's own network, on purpose.
var fullTries = []try{
	{"services on loopback", "databases and the like that listen on 127.0.0.1", func(t Targets) string {
		return firstReached("tcp", t, t.Loopback)
	}},
	{"services of this machine", "the same at its other addresses", func(t Targets) string {
		return firstReached("tcp", t, t.Addresses...)
	}},
	{"interfaces", "the names and addresses of your networks", interfaces},
}

// unixSocketTries connect to AF_UNIX sockets of the host.
var unixSocketTries = []try{
	{"abstract sockets", "X11 and D-Bus, whatever is mounted", func(t Targets) string {
		return firstReached("unix", t, "@"+t.Abstract)
	}},
	{"a socket's path", "a service that listens in a folder of the host", func(t Targets) string {
		return firstReached("unix", t, t.Socket)
	}},
}

// firstReached connects to each address and returns the first from which the canary comes; empty: none.
func firstReached(network string, t Targets, addresses ...string) string {
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

// interfaces returns an address of this network namespace that is one of the host's; empty: none. It leaves out the
// addresses that every sandbox has, which the host could have as well.
func interfaces(t Targets) string {
	found, _ := net.InterfaceAddrs()
	for _, address := range found {
		ip, _, _ := strings.Cut(address.String(), "/")
		if ip == link.Sandbox4.String() || ip == link.Sandbox6.String() {
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
