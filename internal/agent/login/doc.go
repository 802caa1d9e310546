// Package login keeps the user's Claude login outside while an agent uses it.
//
// A [Guard] gives the agent placeholders, and alone renews what stands behind
// them. What renews a login works once: guards and Claude Code outside meet at the
// user's file, under Claude Code's own locks. A login that was made inside is the
// project's own, until its user takes it ([Take]).
//
// What Claude Code does with the files was read in its program and seen in
// its runs, version 2.1.329.
package login
