// Package netfilter closes a sandbox's network: what may leave it is a table
// of rules, loaded into the kernel from outside before anything can leave.
//
// The rules are nftables', by netlink; no program is run. Where a kernel has
// no nf_tables, routing rules stand in. Both are held by sockets in the
// sandbox's network namespace that only claudebox has, so that it can close
// more of it later, and nobody inside can open anything: the namespace belongs
// to a user namespace in which no process of the sandbox is.
package netfilter
