// Package sign is the ssh agent of a sandbox (draft-miller-ssh-agent): it signs
// with keys of the user's, and only what its rules name. It reads what the sandbox
// writes, in a confined process of its own.
package sign
