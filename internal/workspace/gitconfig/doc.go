// Package gitconfig reads git's configuration files the way git does, without
// running git: the identity that the user's own configuration gives for one
// folder, the made ~/.gitconfig of the sandbox, and a copy of a project's
// configuration with the secrets taken out.
//
// Running git in a project executes what the project's configuration names
// (core.fsmonitor, hooks), so claudebox never does. The grammar is that of
// git's config.c; a differential test holds it against the real program.
//
// The package imports diag and the standard library's pure parts only. It
// touches nothing: files are read through a function that the caller gives.
// It trusts nobody: bytes of a project come from the attacker.
package gitconfig
