// Package account is a stand-in for the hosts at which Claude Code logs in: it
// gives out tokens for a code, takes each refresh token once, and knows whose
// account it is. It is reached as a proxy on loopback, or by the hosts' names
// where a test has a resolver of its own; with a certificate of its own making
// that the sandbox must be told to trust.
//
// Which requests an agent makes was measured with Claude Code 2.1.329. The
// package imports authority, reply and the standard library.
package account
