// Package seccomp holds the system call filter that every sandbox runs
// under, as the bytes that bwrap's --seccomp reads from a descriptor.
//
// bwrap's --new-session would keep the agent from typing into the user's
// shell, but costs Ctrl-C and resize; this filter does it instead, on every
// kernel, and closes what a mount or network namespace leaves open: socket
// families that know no network namespace, the kernel's keyring, io_uring
// (which makes sockets behind any filter's back) and the calls that flatpak
// refuses. What is refused, and why, is the table in gen/rules.go.
//
// The bytes are assembled beforehand by the program in gen, because
// assembling costs the start of every session 0.2 ms. Package gen's tests
// prove that the bytes are fresh and decide as the table says; the tests here
// install them in a child process and attack.
//
// It imports nothing, touches nothing and trusts nothing.
package seccomp

//go:generate go run ./gen
