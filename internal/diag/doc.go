// Package diag holds what claudebox says when something is wrong: a place in
// a file, a fault at that place, an error with its remedy, and the one
// printer for them. It imports the standard library only and touches nothing
// but the writer it is given.
package diag
