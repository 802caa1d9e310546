// Package why answers questions about one launch: does the sandbox
// see this path, variable or host, by which rule, and what would change that.
//
// It is pure: the caller looks at files, environment and network, and hands in
// what it found. It names no secret.
package why
