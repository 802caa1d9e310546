// Package storetree mounts a few hundred store paths, and no others, in a sandbox, in
// time that grows linearly with their number. As bind options of bwrap they would take
// quadratic time: for every bind bwrap reads the table of all mounts.
//
// So bwrap binds one empty folder, [Place], as the sandbox's /nix/store, and the tree
// of mounts is added to it while bwrap works. Two stages of claudebox's own program do
// that. The first makes the folder, in a mount namespace that is made for bwrap, and
// makes it a shared mount: what is mounted on it later also appears on bwrap's copy of
// it (mount_namespaces(7), "Shared subtrees"; bwrap makes every mount a slave of the one
// outside). It starts the second stage, and executes bwrap in its own place. The second
// stage makes the tree in a mount namespace of its own, read-only, moves it onto the
// folder in one step, and reports that. The agent runs only after the report.
//
// The first stage also mounts the /proc of bwrap's pid namespace. With an empty list that is
// all that it does: for machines whose own /proc is of no use to bwrap.
//
// If anything fails the folder stays empty: the sandbox never sees more of the store
// than it should.
package storetree
