// Package leak finds text that is probably a secret (SEC-01): a variable by
// its name, any text by the shape of a token in it, by a password in an
// address, or because it looks drawn by lot.
//
// The shapes are gitleaks' (table.go, made by the program in gen). No
// expression is compiled before a text begins like a token, so that judging a
// usual environment costs a few microseconds.
//
// It imports the standard library only and touches nothing. What it is given
// is not trusted, and never in what it says.
package leak
