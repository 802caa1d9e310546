// Package network documents the packages that handle what leaves a sandbox and what enters it.
//
// A sandbox of tier inet or allow has one interface, whose other end belongs to a
// process of claudebox's outside. These packages handle a connection:
//
//	stage    in the sandbox's namespaces, beside bwrap: makes the interface (package link names it)
//	helper   claudebox's side: starts the process, hands it the interface's other end
//	serve    the process: confined, it serves one sandbox
//	stack    a TCP/IP stack in it; every connection is judged, dialled and copied
//	policy   decides what is allowed; does no I/O
//	dns      names: passed on to resolvers outside, or given addresses of their own
//	gate     inspects what is sent to a host that is allowed only by its name
//	journal  what was reached and refused
//	hostnet  what this machine is connected to
//	flow     the types that these share
//
// Package hostpattern has the patterns by which profiles name hosts.
package network
