// Package handover keeps the user's git folders out of the sandbox, and carries commits across.
//
// For each git folder of the user's (the outer one) the agent has one of its own (the inner one), mounted at the same
// path. The outer's objects are there, read-only, as alternates. What was made on one side crosses by git's own
// transfer, and by a three-way decision for each thing by itself: references, HEAD, entries of the index, stashes, a
// merge under way. Hooks, most settings, bits and extensions of an index do not cross, because nothing carries them.
//
// The rule that holds at every moment, also after SIGKILL: only git of the user's or of claudebox, obeying only what
// the user wrote, writes in a git folder of the user's. This process never opens an inner folder. What is in there is
// read and written by git in a [box]: a sandbox with the inner, the user's objects, and nothing else. What comes out
// of the box is text of strict patterns ([Side]) and a pack, which the user's git checks.
//
// [decide] is a function of values. [Session] does what it says, while a session runs and at its end.
package handover
