// Package plan holds the pinned launch plan: the value between a profile and
// a launch, and its file form. Building a plan is a pure function of a
// profile and a resolution; the package imports diag, profile and resolve
// for their types and touches nothing.
package plan
