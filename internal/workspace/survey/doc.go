// Package survey walks a project once and says what in it matters to a
// sandbox: places of git, sockets, and files by name.
//
// It imports beneath and golang.org/x/sys/unix, and trusts nothing it sees: an
// agent wrote there. It goes by breadth, so that what is near the root is seen
// first, follows no link, and stops after a number of entries. A second walk
// lists only the folders that were changed since the first: no program can set
// a folder's time of change (inode(7), st_ctim).
package survey
