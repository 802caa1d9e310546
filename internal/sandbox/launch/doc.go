// Package launch binds a plan to this host, folder and moment, and runs it.
//
// [Bind] is a pure function: it makes a [Launch] from a plan and the facts of a
// host. What is run and what is shown are both made from this Launch: the audit,
// the dry run and the shell script, too. [Launch.Words], which returns bwrap's
// arguments and file descriptors, is pure as well; I/O is in the files that end in
// _linux.go.
//
// The plan, bwrap and the host's /etc are trusted. Everything below the project
// and the instance is not: an earlier session may have planted symbolic links
// there, so sources there are opened without following links.
package launch
