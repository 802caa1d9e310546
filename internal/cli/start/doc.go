// Package start is what a launch needs of claudebox's command line: which words
// are claudebox's and which the agent's, the question before the start, the
// streams and the exit codes.
//
// Claudebox is two programs of one tree, as each launch would pay for what the
// commands and the profiles link: bin/claudebox is this package alone, and
// launches by a plan that is kept; libexec/claudebox is package cli, which does
// everything, and takes the other's place where there is no such plan. Nothing
// has been made or said by then, and nothing runs, so nobody can tell.
package start
