// Package login lends the user's Claude login to an agent's home, and brings
// one that was renewed inside back to the user (AUTH-01).
//
// What renews a login works once. So there are copies, but only one login: a
// [Keeper] watches the user's file and the agent's, carries what is new from
// one to the other, and holds in the user's folder the lock that Claude Code
// takes while it renews (and in the agent's when another holds the user's).
// Several sandboxes meet at the user's file.
//
// The agent can write its copy. What of it reaches the user are the two
// tokens and their dates, each of a known shape, and only while the user's own
// is the one that was lent. Nobody can tell from a token whose it is: an agent
// may put there another account's, see the README.
//
// What Claude Code does with the files was read in its program and seen in
// its runs, version 2.1.329. The package imports diag, beneath and
// golang.org/x/sys/unix.
package login
