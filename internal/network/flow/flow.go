// Package flow holds the types that the parts of the network share: a flow that wants
// to leave a sandbox, the verdict on it, and an answerer, which answers in a host's place.
package flow

import (
	"context"
	"net"
	"net/netip"
)

// Proto is a transport protocol.
type Proto string

// The protocols that can leave a sandbox.
const (
	TCP  Proto = "tcp"
	UDP  Proto = "udp"
	ICMP Proto = "icmp" // echo requests only
)

// Flow is one connection, or one exchange of datagrams, that wants to leave a
// sandbox.
type Flow struct {
	Proto Proto
	// To is the address that will be dialled. Its port is 0 for ICMP; while only Name is known, the address is
	// the zero Addr.
	To netip.AddrPort
	// Name is the host's name in its canonical form (see package hostpattern), if the sandbox connects to an
	// address that package dns made up for a name; else empty.
	Name string
}

// Action is what to do with a flow.
type Action int

// The actions. The zero value refuses.
const (
	Refuse Action = iota
	Dial          // dial with a socket of the host
	Answer        // an [Answerer] answers in the host's place
)

// Verdict is an action with its reason.
type Verdict struct {
	Action Action
	Why    string // the reason of a refusal, for people
}

// Answerer answers connections in place of the hosts that they are for,
// and dials those hosts itself. Its methods are called from many goroutines.
type Answerer interface {
	// Answers reports whether connections to a port of a host are answered here; port 0: to any port of it. name
	// is canonical. The same arguments always give the same result. Such a host gets an address of its own from
	// package dns in every tier, so that the name of a connection is known exactly.
	Answers(name string, port uint16) bool

	// Serve owns client, which is an accepted connection whose first bytes are
	// still to be read, and returns when it is done with it. ctx ends with the
	// session. Each call of dial makes a new TCP connection to the host, judged
	// by the policy (a private address of the name is refused); its error may
	// name addresses of this machine's network, and is not for the client.
	Serve(ctx context.Context, client net.Conn, name string, port uint16, dial func(context.Context) (net.Conn, error))
}
