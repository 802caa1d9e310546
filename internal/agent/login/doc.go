// Package login keeps the user's Claude login outside while an agent uses it.
//
// A [Guard] gives the agent placeholders instead of the tokens, and only the guard renews the login. The token that
// renews a login works once, so guards and Claude Code outside all use the user's file, under Claude Code's own
// locks. A login that was made inside belongs to the project alone, until the user makes it their own ([Take]).
//
// How Claude Code uses these files was found out by reading and running its version 2.1.329.
package login
