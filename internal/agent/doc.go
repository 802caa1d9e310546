// Package agent finds the program that runs inside the sandbox and says what
// it needs there. A program of the Nix store needs nothing, for the store is
// mounted. Any other (Claude Code's own installer, npm) is read: an ELF
// program for its loader and libraries, a script for its interpreter; what
// they need of the host is mounted read-only, file by file or in the folders
// that every distribution keeps its libraries in, never a home folder or the
// whole of /usr.
//
// It reads through [Files] and writes nothing. It trusts the manifest, the store, and files that only root or the user
// can have written, but no file in the project: an agent that ran before may have planted it. What a program says it
// needs is not trusted: a hostile one could name a secret as its library, so only code is mounted.
package agent
