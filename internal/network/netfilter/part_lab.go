//go:build lab

package netfilter

import (
	"net/netip"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Tests break the filter to see that something notices. These variables count
// only in a claudebox that is built with the tag lab, which none that is
// installed is.
const (
	dropRule  = "CLAUDEBOX_LAB_DROP_RULE"  // the name of a rule to leave out
	dropRange = "CLAUDEBOX_LAB_DROP_RANGE" // a prefix that is not forbidden
	noTables  = "CLAUDEBOX_LAB_NO_TABLES"  // any value: the kernel has no nf_tables
)

func rulesInForce() []Rule {
	return slices.DeleteFunc(Rules(), func(r Rule) bool { return r.Name == os.Getenv(dropRule) })
}

func rangesInForce(forbidden []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(forbidden), func(p netip.Prefix) bool { return p.String() == os.Getenv(dropRange) })
}

func protocolHere() int {
	const none = 31 // no protocol of netlink has this number
	if os.Getenv(noTables) != "" {
		return none
	}
	return unix.NETLINK_NETFILTER
}
