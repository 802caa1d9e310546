package network

import (
	"strings"

	"claudebox/internal/network/hostnet"
	"claudebox/internal/network/netfilter"
)

// Shown says what connects the sandbox, in lines for a reader of its command
// line: the rules in the order in which they are asked, and pasta's words.
func Shown(program string) []string {
	var names []string
	for _, r := range netfilter.Rules() {
		names = append(names, r.Name)
	}
	both := words(0, hostnet.Network{IPv4: true, IPv6: true})
	return []string{
		"first: nf_tables rules in its network namespace: " + strings.Join(names, ", ") + "; all else is dropped",
		"then: " + program + " " + strings.Join(both[1:len(both)-1], " ") + " PID-of-bwrap",
		"an address family without a default route here is left out",
	}
}
