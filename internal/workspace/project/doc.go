// Package project says what the sandbox sees of the caller's folder: its
// canonical place, the git folders that belong to it, which of its files the
// host executes and must therefore be read-only inside, which look secret and
// are hidden.
//
// It imports what reads git's files and what walks a project, reads the
// project and what its .git points at, and trusts nothing in either: an agent
// wrote there in earlier sessions. It runs no program (git in a project obeys
// core.fsmonitor), and follows no symbolic link below the project.
//
// [Open] only reads. [Project.Hold] makes the few placeholders without which
// an absent file would be a way to the host, and takes them away again.
package project
