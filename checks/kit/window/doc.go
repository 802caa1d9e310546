// Package window is a terminal's window with the real Claude Code in it, or
// with a shell, that a test uses as a person does: it reads what is shown, and
// types. What Claude Code shows was seen with 2.1.329.
//
// The package imports account, must, screen, a library for pseudo-terminals,
// and the standard library.
package window
