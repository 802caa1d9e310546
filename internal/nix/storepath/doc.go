// Package storepath checks and computes store paths, as text: it does no I/O and imports
// nothing but go-nix's base32 and the standard library. It compiles no regular expression
// when the program starts: go-nix's own storepath package costs 0.14 ms there, more than
// any other package of claudebox, and accepts paths that a daemon refuses
// (leading dots, names without a dash, over 211 characters).
package storepath
