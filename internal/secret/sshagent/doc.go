// Package sshagent is an ssh agent (draft-miller-ssh-agent) for a sandbox: it
// signs with keys of the user's that stay outside, and only what its rules name.
// A confined process of its own reads what the sandbox writes.
package sshagent
