// Package gcroot protects store paths from the garbage collector between
// launches. Each plan has a folder with one symlink per path, registered with
// the Nix daemon as an indirect root. A launch whose plan is cached and whose
// paths are rooted this way need not ask the daemon.
//
// A set of links belongs to a plan file. It lives as long as that file exists
// and the set is used: see [Folder.Make]. While a session holds a set, no other
// process removes it. The package writes only in its folder, and reads the daemon's
// list of roots. No sandbox can be given that folder; still, the package trusts
// a link in it only if the daemon's list agrees.
package gcroot
