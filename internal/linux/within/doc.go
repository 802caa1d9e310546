// Package within makes system calls in the namespaces of a sandbox, from
// outside and as their owner: it mounts there what a sandbox must not be able to
// take away, and starts programs there.
//
// Only a process with one thread may enter a user namespace (setns(2)), and a Go program has more when its main runs,
// so an executed helper cannot do it either. Instead the calls are written down beforehand, and a copy of this
// process makes them, runs nothing else, and ends.
//
// It trusts nothing inside: a path is opened without following any link, and
// what is mounted or mounted on is named by its descriptor from then on.
package within
