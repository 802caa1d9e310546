// Package netns reaches into the network namespace of a running sandbox from
// outside: claudebox makes sockets there without a process of its own inside.
// A listener that it makes belongs to claudebox alone: the agent can connect
// to it and has nothing to kill or to replace, and the sandbox needs no route.
//
// The namespace must have been made, with its user namespace, by a child of
// this process and this user: the kernel then gives this process every
// capability over it (user_namespaces(7)), so that it may configure what it
// holds a socket of. Only to make a socket one must be inside.
package netns
