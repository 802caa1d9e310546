// Package words holds the README and docs/ to what claudebox does: every line
// of code in them is run, parsed or judged here, or listed as one that is not.
//
// It needs CLAUDEBOX_BIN, as checks/test sets it.
package words
