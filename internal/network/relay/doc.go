// Package relay carries bytes between two TCP connections within the kernel
// (splice(2)): what passes is never copied into this process, and a
// connection that waits costs no buffer.
package relay
