// Package state keeps what a sandbox remembers: one folder per project below
// CLAUDEBOX_HOME, with the agent's home in it, the caches, and beside them
// what the agent must not reach (locks, approvals, the record).
//
//	instances/<id>/.claude        the agent's home; the only part, with cache, that is mounted
//	instances/<id>/cache          ~/.cache and other caches
//	instances/<id>/record         the root it belongs to; what was made of which inputs
//	instances/<id>/approved       what the user approved last
//	instances/<id>/live           locked while a session runs; its time is the last use
//	ephemeral/<id>-<random>       the same for one session
//
// Package agenthome says what the files of an agent's home hold. This one reads a few
// files of the user's own ~/.claude. It does not trust what lies in an agent's home:
// the agent wrote there.
//
// [Look] only reads; [Instance.Prepare] makes what is missing. If nothing has changed, a launch costs a few system
// calls. An instance's folder is locked while it is changed. [List] lists the instances that are kept, and [Choose]
// selects those to remove.
package state
