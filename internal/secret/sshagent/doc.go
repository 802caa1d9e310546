// Package sshagent is claudebox's side of a sandbox's ssh agent: it starts the agent, which is package
// sign, and finds out which keys the agent may sign with. The private keys stay
// outside the sandbox.
package sshagent
