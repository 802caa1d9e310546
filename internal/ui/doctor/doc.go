// Package doctor looks at what a launch needs of this machine and says what
// to do about what is missing: the kernel, bwrap, the store and its daemon,
// room for the agents' homes, a terminal. What a launch is made of
// (profile, project, agent) is judged by those who make it; their errors
// become findings as well, by [Faults].
//
// It looks by doing: it makes a user namespace, starts an empty sandbox,
// shakes hands with the Nix daemon. It writes nothing. Settings of the kernel
// are read only to choose the advice.
package doctor
