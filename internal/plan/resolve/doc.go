// Package resolve turns the packages of a profile into store paths that exist. It
// looks packages up in the manifest that Nix made with claudebox, then in the cache
// of earlier evaluations, then by one evaluation. Paths that are not in the store
// are fetched; those that cannot be fetched are built.
//
// For most launches the manifest is enough. Such a launch costs one lstat for each
// store path: no daemon, no process, no cache.
//
// All I/O goes through the two interfaces that the caller provides, [Store] and
// [Evaluator], except for the cache folder, the manifest's file of references and
// the lstat of store paths.
//
// # Garbage collection
//
// Paths of the manifest are in the closure of claudebox itself, which its
// installation protects from the garbage collector. All other paths are pinned by
// [Store.Pin] before the store is asked whether they are valid, and stay pinned for
// as long as the caller keeps the Store open. After that package gcroot protects them.
package resolve
