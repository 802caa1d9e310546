// Package inside gives a sandbox a Nix of its own: a store that lies over the
// host's, and a filter through which that store asks the host's daemon what is
// there.
//
// # The filter
//
// The Nix inside keeps its own database and builds in its own folders; the
// host's store is the lower layer of its own. Of that it has to know which paths
// are valid and what they refer to, and nothing else. So the filter answers
// questions, listed in operations.go, and refuses every other operation without
// telling the daemon of it. What it asks the daemon is made anew from the values
// it read: no byte of a client is passed on. It is the same for users whom the
// daemon trusts.
//
// It runs in a process of its own that can open nothing and connect to nothing
// (package confine); the connection to the daemon is made by its parent, which
// reads single bytes from it.
//
// # Garbage collection
//
// Nix takes for granted that a lower store only grows: what the inner database
// knows is never asked for again. So what the filter calls valid is a root for
// as long as the session runs, and is written down in a list outside the
// sandbox. The next session makes roots of the list before anything else, and
// where one of them is gone the inner store is made anew.
package inside
