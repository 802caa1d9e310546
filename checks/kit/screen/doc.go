// Package screen is the display of a terminal, so that a test can read what a
// full-screen program shows instead of the bytes that it wrote, and can tell
// which modes it left set.
//
// It knows the part of ECMA-48 and of xterm's control sequences that Claude
// Code was seen to use; each character is one column wide. Colours are not
// kept. Like the display it stands for, it answers no queries. The package
// imports the standard library only.
package screen
