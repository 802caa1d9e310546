// Package beneath looks at, reads and writes files below a folder in which an
// agent may have written. Every path is relative to an open folder, and
// openat2 refuses each that leaves it or goes through a symbolic link, so
// what was checked is what is used.
//
// It imports the standard library and golang.org/x/sys/unix, and trusts
// nothing below the folder.
package beneath
