// Package diff lists what changed from one plan to another, by name: packages with
// their versions, variables, mounts, hosts and settings, and which of these changes
// let more in or out. It is a pure function of two plans. A change that only follows
// from another one (PATH from the packages, a link from the tool that it leads to) is
// not listed a second time.
package diff
