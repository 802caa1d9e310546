// Package sign is the ssh agent of a sandbox (draft-miller-ssh-agent): it signs
// with the user's keys, but only what its rules allow. It parses what the sandbox
// sends, so it runs in a confined process of its own.
package sign
