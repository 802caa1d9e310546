// Package hostrun knows the files of a project that tools of the host execute,
// or take orders from, and what that means to a person (attacks.md, 3.3).
//
// Git's own are not among them: they are protected, or made harmless. The
// package is a function of values and imports nothing of claudebox.
package hostrun
