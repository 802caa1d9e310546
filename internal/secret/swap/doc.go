// Package swap lets an agent use secrets that it never holds. Inside the
// sandbox there is a placeholder of the same shape; this package ends the TLS
// of connections to the hosts that a secret is for, puts the true secret in
// the placeholder's place, and talks to the true host, whose certificate it
// verifies as any client of the machine would.
//
// It knows a connection's host and port from whoever accepted it, see
// [Broker.Serve]: the proxy of tier full ([Proxy]) or the network's own stack.
// For each request the name in TLS, the Host of HTTP and that name must be one.
// A placeholder is swapped in a header that carries credentials and nowhere
// else; whatever else is done with one is refused and reported
// ([broker.Refusal]). What comes back is searched for the secret ([scanner]).
//
// Everything that arrives is hostile but for the [broker.Config]. What renews
// Claude's login is never here: the process that holds this package answers what
// an agent asks of the token endpoint itself, or asks its parent ([broker.Keeper]).
package swap
