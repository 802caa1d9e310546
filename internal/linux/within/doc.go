// Package within makes system calls in the namespaces of a sandbox, from
// outside and as their owner: it mounts there what a sandbox must not be able to
// take away.
//
// Only a process with one thread may enter a user namespace, which no program of
// Go's is (see package fork). So the calls are written down beforehand, as a
// [Script], and a copy of this process makes them, runs nothing else, and ends.
//
// It trusts nothing inside: a path is opened without following any link, and
// what is mounted or mounted on is named by its descriptor from then on.
package within
