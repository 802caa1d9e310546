// Package diag holds what claudebox says when something is wrong: a place in a file, a fault at that place, an error
// with its remedy, and the one printer for them. It imports the standard library only, and does no I/O but to the
// writer that it is given.
package diag
