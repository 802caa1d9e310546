// Package confine takes from a process, for good, everything that it does not need: descriptors, files, system calls,
// and the ability to gain rights by running a program (no_new_privs). It is for helpers that read what an attacker
// wrote. Such a helper is claudebox's own program, run again in a process of its own; it gets its descriptors from its
// parent, calls [Self] first of all, and only then reads a byte.
//
// The caller lists the system calls that are allowed; every other call fails. [Runtime] is what Go itself needs,
// [Sockets] what existing sockets need, and the helper names everything else.
package confine
