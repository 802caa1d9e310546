// Package stack is the other end of a sandbox's one interface: a TCP/IP stack
// in this process, by gvisor.dev/gvisor/pkg/tcpip. Each connection that comes
// out of it is judged (package policy), dialled by a socket of the host, and
// copied. No packet of the sandbox ever leaves the machine.
package stack
