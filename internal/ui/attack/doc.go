// Package attack is what `claudebox check --attack` tries from inside a
// sandbox: each way to a secret, to the host, to the network or to the kernel
// that is known to have worked against a sandbox like this one, as one line.
//
// [Make] plants what is to be stolen and the targets on loopback, outside.
// [Run] is the attacker, inside, and says what it got. [Judge] compares that
// with what the plan lets in. Nothing but this machine is contacted.
package attack
