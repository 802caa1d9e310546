// Package confine takes from a process, for good, everything that it does not
// need: descriptors, files, system calls, the right to gain rights. It is for
// the helpers that read what an attacker wrote. Such a helper is this program
// once more, in a process of its own; it gets its descriptors from its parent,
// calls [Self] first of all, and only then reads a byte.
//
// What is left to it is said by a list of system calls, not by a list of
// forbidden ones: [Runtime] is what Go itself needs, [Sockets] what sockets need
// that are there already, and everything else is named by the helper.
package confine
