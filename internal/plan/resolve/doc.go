// Package resolve turns the packages of a profile into store paths that are
// there: first from the manifest that Nix made with claudebox, then from the
// cache of earlier evaluations, then by one evaluation; what is not in the
// store is fetched, and what cannot be fetched is built.
//
// The usual launch is answered by the manifest alone. It costs one lstat a
// store path: no daemon, no process, no cache.
//
// The package touches its two interfaces, [Store] and [Evaluator], which the
// caller provides; its cache folder; and, by lstat, store paths.
//
// # Garbage collection
//
// Paths of the manifest are in the closure of claudebox itself, and whoever
// installed that holds it. Everything else is pinned by [Store.Pin] before
// its validity is asked, and stays pinned for as long as the caller keeps
// the Store open. Package gcroot holds it from then on.
package resolve
