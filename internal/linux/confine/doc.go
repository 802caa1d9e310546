// Package confine takes from a process, for good, everything that it does not need: descriptors, files, system calls,
// the right to gain rights. It is for helpers that read what an attacker wrote. Such a helper is this program, run
// again in a process of its own; it gets its descriptors from its parent, calls [Self] first of all, and only then
// reads a byte.
//
// What is left is given by a list of allowed system calls, not of forbidden ones: [Runtime] is what Go itself needs,
// [Sockets] what existing sockets need, and the helper names everything else.
package confine
