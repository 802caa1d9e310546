// Package cli is claudebox's command line: which words are claudebox's and
// which the agent's, the commands, the streams and the exit codes. It is the
// only package that knows cobra, and the place where effects meet: it reads
// what the pure stages need and hands it to them as values.
package cli
