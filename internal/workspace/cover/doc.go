// Package cover keeps files of a project covered in a running sandbox. A mount
// over a file goes when a program of the host replaces that file, as editors
// and `git config` do: the kernel drops it, and the agent could read the new
// secret or write the new configuration. This package sees the replacement
// (inotify(7)) and covers the file anew from outside.
//
// For that it makes mounts in the sandbox's namespace, see package within. It
// trusts nothing inside.
package cover
