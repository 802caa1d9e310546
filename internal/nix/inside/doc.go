// Package inside gives a sandbox a Nix of its own: a store that is an overlay over the
// host's, and a filter through which that store asks the host's daemon which paths
// exist.
//
// # The filter
//
// The Nix inside keeps its own database and builds in its own folders; the
// host's store is its lower layer. Nix only has to know which of the host's paths
// are valid and what they refer to. So the filter answers the queries listed in
// operations.go, and refuses every other operation without
// passing it on. It composes each request to the daemon anew from the values
// it read: no byte of a client is passed on. It does the same for users whom the
// daemon trusts.
//
// The filter runs in a process of its own that can open no files and make no connections
// (package confine). Its parent makes the connection to the daemon, and
// reads single bytes and store paths from the filter. A path that the host has not may be made
// inside now: the parent then hides the lock that a failed build on the host has left beside it.
//
// # Garbage collection
//
// Nix assumes that a lower store only grows: it never asks again about a path that
// the inner database knows. So every path that the filter calls valid is a root for
// as long as the session runs, and is added to a list outside the
// sandbox. The next session first makes roots of the paths in the list; if
// one of them is gone, the inner store is made anew.
package inside
