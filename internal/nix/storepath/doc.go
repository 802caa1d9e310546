// Package storepath judges the text of store paths. It is pure, imports
// nothing but go-nix's base32, and compiles no pattern when the program
// starts: go-nix's own storepath package costs 0.14 ms there, more than any
// other package of claudebox, and accepts paths that a daemon refuses
// (leading dots, names without a dash, over 211 characters).
package storepath
