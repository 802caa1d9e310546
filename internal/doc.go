// Package internal holds claudebox's packages, a dozen rooms and a few. No
// arrow points back: a room imports only the rooms that stand above it here,
// and nothing in the program imports cli. The table in architecture_test.go
// says which, and is held by that test.
//
//	diag       what is said when something is wrong; text in columns; misspelt words
//	linux      system calls with a contract: paths, processes, namespaces
//	secret     what is probably a secret; the broker, by which an agent uses one without having it
//	host       who runs claudebox, where, with which environment
//	nix        everything that speaks Nix: the daemon, evaluation, roots
//	network    what leaves a sandbox and what enters
//	profile    documents to a valid Profile; where they lie; what a project's own may do
//	plan       package names to store paths; the pinned plan
//	sandbox    plan and host to bwrap's words; what is inside; the running sandbox
//	agent      the program inside, and what it keeps between sessions
//	workspace  the project and folders beside it, read-write: looked at, protected, compared; commits handed over
//	ui         what a person reads: the audit, explanations, checks
//	session    one launch made of what the caller asked for, where effects meet
//	cli        commands, flags, questions, exit codes, manual pages
package internal
