// Package gitindex reads which files git's index tracks. It is a function of
// the bytes it is given, which an agent may have written: it fails on what it
// cannot read.
package gitindex
