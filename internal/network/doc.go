// Package network gives a sandbox the internet without the house: tier inet.
//
// bwrap is started in a user and a network namespace of its own, and waits
// there with its agent for the filter of system calls. Meanwhile this package
// loads the rules into that namespace from outside (package netfilter), and only
// then starts pasta, which connects it: without rules there is no network.
// bwrap's own user namespace is a child of the one that owns the network, so
// nobody inside has a capability over it.
//
// While the session runs, an address or a network that this machine comes to
// is forbidden as soon as the kernel tells of it. What cannot be forbidden
// ends pasta, and with it the sandbox's network. Another resolver of this
// machine is a reason to start pasta anew, behind the same rules.
package network
