// Package trust decides what a project's own profile, the .claudebox.yaml at
// its root, may do. It may always narrow what the user's profile grants.
// It may widen that only after the user allowed exactly this file content, and
// only by the widenings that they were shown. After any change of the file the
// user is asked again.
//
// What is narrower package grant says: a change that is not certainly so is a
// widening. [Store] keeps the user's answers, one file for each project, below
// CLAUDEBOX_HOME, where no agent can write.
//
// Nothing in the project is trusted: [Read] limits how much it reads and refuses
// symbolic links.
package trust
