// Package secretfile knows files that hold secrets by their names, and where a
// name alone does not tell, by what is in them (SEC-05).
//
// It is a function of values. What a token looks like is known by package leak.
package secretfile
