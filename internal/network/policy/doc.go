// Package policy judges what wants to leave a sandbox. It does no I/O: a verdict
// follows from the rules of the launch, from what the host is connected to at
// the moment, and from the flow.
package policy
