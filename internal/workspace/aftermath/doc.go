// Package aftermath deals with what a session left in its project: git folders
// that the agent made are made harmless, and what the host's tools would run
// is told (SEC-04).
//
// [Begin] notes what is there and keeps the note in a file, in claudebox's own
// folder, that is locked while the session lives. [Session.End] looks again at
// each folder that the agent could write to; review compares the two looks, as a
// function of values, and gives what is to be told and what is to be repaired. A
// session that was killed leaves its note: [Sweep] ends it at the next launch,
// whatever its project was.
//
//	sessions/<random>   one session: what was there before it
//	memory/             what sessions added to indexes, and what stays hidden
//	walks/<id>          what was last seen of a large project
//
// It imports project, and what makes harmless and tells. It trusts its own
// files, which no sandbox sees, and nothing of a project.
package aftermath
