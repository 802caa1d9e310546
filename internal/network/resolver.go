package network

import (
	"bytes"
	"net/netip"

	"claudebox/internal/network/netfilter"
)

// ResolvConf is the resolv.conf(5) inside, for a host with this one: it names
// where pasta answers, in a family that the host has a resolver of, as pasta
// asks that one. Nil: the host has none.
func ResolvConf(host []byte) []byte {
	for _, inside := range netfilter.Resolvers() {
		for _, outside := range nameservers(host) {
			if inside.Is4() == outside.Is4() {
				return []byte("nameserver " + inside.String() + "\n")
			}
		}
	}
	return nil
}

// nameservers are the addresses that a resolv.conf names.
func nameservers(conf []byte) []netip.Addr {
	var list []netip.Addr
	for line := range bytes.Lines(conf) {
		words := bytes.Fields(line)
		if len(words) < 2 || string(words[0]) != "nameserver" {
			continue
		}
		if addr, err := netip.ParseAddr(string(words[1])); err == nil {
			list = append(list, addr)
		}
	}
	return list
}
