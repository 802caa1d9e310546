// Package seccomp holds the system call filter that every sandbox runs
// under, as the bytes that bwrap's --seccomp reads from a descriptor.
//
// bwrap's --new-session would prevent the agent from typing into the user's shell, but
// breaks Ctrl-C and resizing; this filter prevents it instead, on every kernel. It also
// blocks what mount and network namespaces do not isolate: socket families that ignore
// network namespaces, the kernel's keyring, io_uring (whose sockets no filter sees) and
// the calls that flatpak refuses. The table in gen/rules.go says what is refused, and
// why.
//
// The filter is assembled beforehand by the program in gen, because assembling it at
// run time would cost the start of every session 0.2 ms. Package gen's tests prove that
// the files are up to date and decide as the table says; the tests here install the
// filter in a child process and try attacks.
//
// The package embeds the filter and does nothing else.
package seccomp

//go:generate go run ./gen
