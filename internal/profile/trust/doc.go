// Package trust decides what a project's own profile, the .claudebox.yaml at
// its root, may do (EXT-01): narrow what the user's profile grants, always;
// widen it only after the user allowed this very content, and only by what they
// was shown. Any change asks again.
//
// [Narrow] is a pure function of two profiles, by a table that knows every
// field: what is not certainly narrower is a widening. [Store] keeps what the
// user said, one file a project, below CLAUDEBOX_HOME where no agent writes.
//
// The package imports diag, beneath, hostpattern, layout, leak and profile. It trusts
// nothing in the project: [Read] bounds what it reads and follows no link.
package trust
