// Package sign is the ssh agent of a sandbox (draft-miller-ssh-agent): it signs
// with the user's keys, but only what its rules allow ([Run]). It parses what the
// sandbox sends, so it runs in a confined process of its own.
//
// [AnswerKeys] is for the time before: it finds out which keys and known hosts the user
// has, also in a process of its own.
package sign
