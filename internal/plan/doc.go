// Package plan holds the pinned launch plan, which is built from a profile and
// from which launches are made, and the form in which it is stored in a file.
// Building a plan is a pure function of a profile and a resolution; the package
// does no I/O.
package plan
