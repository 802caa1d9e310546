// Package netfilter closes a sandbox's network: what may leave it is a table
// of rules, loaded into the kernel from outside before anything can leave.
//
// The rules are nftables', by netlink; no program is run. They are held by a
// socket in the sandbox's network namespace that only claudebox has, so that it
// can close more of it later, and nobody inside can open anything: the
// namespace belongs to a user namespace in which no process of the sandbox is.
//
// Routing rules (ip-rule(8)) are no substitute where a kernel has no
// nf_tables: a socket that names its interface walks past them, and multicast
// past the neighbours that one could refuse to resolve. There is no tier inet
// then.
package netfilter
