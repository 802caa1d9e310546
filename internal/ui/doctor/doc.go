// Package doctor checks what a launch needs of this machine (the kernel, bwrap,
// the store and its daemon, disk space for the agents' homes, a terminal), and says
// what to do about what is missing. What a launch is made of
// (profile, project, agent) is judged by those who make it; their errors
// become findings as well, by [Faults].
//
// It checks by doing: it makes a user namespace, starts an empty sandbox, greets
// the Nix daemon. It leaves nothing behind. Settings of the kernel are read only to
// choose the advice, and to say whether programs can type into terminals.
package doctor
