// Package grant is the model of what a sandbox lets in: what its agent may read, write, reach and use, and what is kept
// from it. A [Set] of grants is made from a profile, from a plan (package plan/diff), and from a launch (package
// ui/audit). A project's own profile, a newer plan, and a launch that nobody has approved are compared in one way:
// [Sides.Changes] judges each difference, whether it lets in more, by one table of rules.
//
// A key that has no rule, or a level that its rule does not know, is never less.
package grant
