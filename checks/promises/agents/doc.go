// Package agents runs other agents than Claude Code for real, from npm, inside
// a sandbox, against an API that answers from a script.
//
// It needs what checks/setup gets, and CLAUDEBOX_BIN and CLAUDEBOX_TEST_CLAUDE
// as checks/test sets them; the others lie beside Claude Code.
package agents
