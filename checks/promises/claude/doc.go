// Package claude holds the end-to-end tests: the real Claude Code, started by
// the built claudebox in a real sandbox, against a model played by package
// script on loopback. They carry the build tag lab and are told by the
// environment what to run:
//
//	CLAUDEBOX_BIN          the built claudebox, beside its manifest
//	CLAUDEBOX_TEST_CLAUDE  Claude Code's program
//
// They are for an unprivileged user, and they reach nothing but 127.0.0.1.
package claude
