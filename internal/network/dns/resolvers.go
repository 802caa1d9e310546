package dns

import (
	"bytes"
	"net/netip"
	"os"
)

// ResolvConf is the file that names the machine's resolvers.
const ResolvConf = "/etc/resolv.conf"

// port is the port on which resolvers listen.
const port = 53

// Nameservers returns the resolvers named in a resolv.conf(5). If it names none, the resolver is the machine itself.
func Nameservers(conf []byte) []netip.AddrPort {
	if list := Named(conf); len(list) > 0 {
		return list
	}
	return []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)}
}

// Named returns the resolvers named in a resolv.conf(5), at most three, as other readers do.
func Named(conf []byte) (list []netip.AddrPort) {
	const most = 3
	for line := range bytes.Lines(conf) {
		words := bytes.Fields(line)
		if len(words) < 2 || string(words[0]) != "nameserver" || len(list) == most {
			continue
		}
		if addr, err := netip.ParseAddr(string(words[1])); err == nil {
			list = append(list, netip.AddrPortFrom(addr, port))
		}
	}
	return list
}

// Resolvers returns the machine's current resolvers.
func Resolvers() []netip.AddrPort {
	text, _ := os.ReadFile(ResolvConf)
	return Nameservers(text)
}
