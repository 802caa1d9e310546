// Package stack answers the packets of a sandbox by a TCP/IP stack in this process
// (gvisor.dev/gvisor/pkg/tcpip). Package policy judges each connection that the sandbox
// opens. If it is allowed, the stack dials the same address with a socket of the host
// and copies the data. No packet of the sandbox ever leaves the machine.
package stack
