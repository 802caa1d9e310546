// Package cli is claudebox's command line: which words are claudebox's and which
// the agent's, the commands, the question before the start, and the exit codes.
// It is the only package that knows cobra.
package cli
