// Package cover keeps files of a project covered in a running sandbox. A mount
// over a file goes when a program of the host replaces that file, as editors
// and `git config` do: the kernel drops it, and the agent could read the new
// secret or write the new configuration. This package sees the replacement
// (inotify(7)) and covers the file anew from outside.
//
// For that it enters the sandbox's mount namespace, as the owner of its user
// namespace (setns(2), user_namespaces(7)). Only a process with one thread may
// do so, so it forks one that makes a few system calls and ends; it runs
// nothing of Go's but those.
//
// It imports golang.org/x/sys/unix, and trusts nothing inside.
package cover
