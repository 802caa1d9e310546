// Package storetree shows a sandbox a few hundred paths of the store and no
// others, at a cost that grows with their number. As words for bwrap they
// would cost its square: for every bind bwrap reads the table of all mounts.
//
// So bwrap binds one empty folder, [Place], as the sandbox's /nix/store, and
// the tree of mounts comes to it while bwrap is at work. Two stages of claudebox's
// own program do that. The first makes the folder, in a mount namespace that is
// made for bwrap, and shares it: what is mounted on it later also appears on
// bwrap's copy of it (mount_namespaces(7), "Shared subtrees"; bwrap makes every
// mount a slave of the one outside). It starts the second stage, and becomes
// bwrap. The second makes the tree in a namespace of its own, read-only, moves it
// onto the folder in one step, and says so. The agent waits for that.
//
// What fails leaves the folder empty: the sandbox never sees more of the store
// than it should.
package storetree
