// Package diff lists what changed from one plan to another, by name: which
// packages at which version, which variables, mounts, hosts and settings, and
// which of these changes let more in or out. It is a function of two plans;
// what follows from another change (PATH from the packages, a link from the
// tool it leads to) is not listed a second time. It imports plan and
// storepath.
package diff
