// Package leak finds text that is probably a secret: a variable by
// its name, and any text because it contains a token of a known shape or an
// address with a password, or because it looks random.
//
// The shapes are gitleaks' (table.go, made by the program in gen). An
// expression is compiled only when a text begins like its token, so that checking a
// usual environment costs a few microseconds.
//
// It imports the standard library only and does no I/O. Its input is not trusted,
// and no part of it is in what it returns.
package leak
