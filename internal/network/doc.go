// Package network holds what leaves a sandbox and what enters it.
//
// A sandbox of tier inet or allow has one interface, whose other end is a
// process of claudebox's outside. What becomes of a connection:
//
//	stage    in the sandbox's namespaces, beside bwrap: makes the interface (package link names it)
//	helper   claudebox's side: starts the process, hands it the interface's other end
//	serve    the process: confined, it serves one sandbox
//	stack    a TCP/IP stack in it; every connection is judged, dialled and copied
//	policy   the judge, a function of values
//	dns      names: asked for outside, or given addresses of their own
//	gate     listens to what is said to a host that only its name admits
//	journal  what was reached and refused
//	hostnet  what this machine is connected to
//	flow     the words that these share
//
// Package hostpattern is what profiles name hosts by.
package network
