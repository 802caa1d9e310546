// Package gitdefuse makes the git folder that an agent made harmless: the
// host's git then runs nothing that stands in it. What is taken out is kept
// beside, in a folder that git does not read.
//
// It imports beneath and gitconfig, and runs no git: that would obey what is
// to be taken out. It works below a folder that an agent wrote to, follows no
// link there, and trusts nothing in it. Nothing may run inside any more, or
// what it did can be undone at once.
package gitdefuse
