// Package login keeps the user's Claude login outside while an agent uses it.
//
// A [Guard] gives the agent placeholders instead of the tokens, and only the guard renews the login. The token that
// renews a login works once, so guards and Claude Code outside all use the user's file, under Claude Code's own
// locks. A login that was made inside is the project's own, until its user takes it ([Take]).
//
// How Claude Code uses these files was read in its program and seen in its runs, version 2.1.329.
package login
