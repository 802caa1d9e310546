// Package gitdir finds the git folders that belong to a folder, without git:
// it reads .git, gitdir and commondir itself. All of them may have been
// written by an agent, so a git folder outside counts only if it points back,
// and only where git would put it.
//
// It imports beneath and gitconfig, and reads nothing but those few files.
package gitdir
