//go:build !lab

package netfilter

// A launch takes all of it. Only a claudebox that tests have built for
// themselves can leave a part out, see part_lab.go.

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

func rulesInForce() []Rule                                  { return Rules() }
func rangesInForce(forbidden []netip.Prefix) []netip.Prefix { return forbidden }
func protocolHere() int                                     { return unix.NETLINK_NETFILTER }
