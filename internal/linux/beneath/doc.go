// Package beneath looks at, reads and writes files below a folder in which an
// agent may have written. Every path is relative to an open [Folder], and
// openat2 refuses each that leaves the folder or goes through a symbolic link, so
// what was checked is what is used.
//
// It also tells where a path leads when links are followed: [Canonical], [Leads]
// and [Follow].
package beneath
