// Package policy judges what wants to leave a sandbox. It is pure: a verdict
// follows from the rules of the launch, from what the host is connected to at
// this moment, and from the flow.
package policy
