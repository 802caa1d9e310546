// Package netlink speaks the little of netlink(7) that claudebox needs:
// requests with attributes, their acknowledgements, dumps, and what the
// kernel tells by itself.
//
// It exists beside the libraries for this because a launch in tier inet asks
// the kernel over sockets that were made in another network namespace, which
// no library takes, and because a launch in any other tier must not pay for
// their initialisation (55 µs for google/nftables, a fiftieth of a start).
package netlink
