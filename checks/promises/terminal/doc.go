// Package terminal holds claudebox's parent process to what a user of a shell
// expects of a direct child: Ctrl-C, Ctrl-Z and fg, resize, kill, a closed
// terminal, exit statuses, and nothing left behind whatever ends it.
//
// The tests need the lab (checks/setup) and carry the build tag lab. They run
// $CLAUDEBOX_BIN with the probe as its agent, from a bash on a pseudo-terminal
// where job control is in question. checks/test runs them with all others.
package terminal
