// Package sshagent is claudebox's side of a sandbox's ssh agent, which is package
// sign: it starts that, and finds out which keys it may sign with. They stay
// outside.
package sshagent
