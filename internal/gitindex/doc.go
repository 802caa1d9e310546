// Package gitindex reads from git's index which of some places are tracked.
// It is a function of the bytes it is given, which an agent may have written:
// it fails on what it cannot read, and keeps no more than one name of them.
package gitindex
