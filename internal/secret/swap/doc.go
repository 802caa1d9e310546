// Package swap lets an agent use secrets that it never gets. Inside the
// sandbox there is a placeholder of the same shape. This package terminates the TLS
// of connections to the hosts that a secret is for, replaces the
// placeholder with the real secret, and talks to the real host, whose certificate it
// verifies as any client of the machine would.
//
// It learns a connection's host and port from the code that accepted it, see
// [Broker.Serve]: the proxy of tier full ([Proxy]) or the network's own stack.
// For each request, the name in TLS, the Host of HTTP and that name must be the same host: capitals and a dot
// at the end make no difference.
// A placeholder is swapped in a header that carries credentials and nowhere
// else; any other use of one is refused and reported
// ([broker.Refusal]). Answers are searched for the secret ([scanner]).
//
// Everything that arrives is hostile except the [broker.Config]. The refresh token of
// Claude's login is never here: the process that runs this package answers an agent's
// requests to the token endpoint itself, or asks its parent ([broker.Keeper]).
package swap
