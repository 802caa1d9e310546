// Package gcroot keeps store paths from the garbage collector between
// launches: for each plan a folder with a link to each path, registered with
// the Nix daemon as an indirect root. A launch whose plan is kept and whose
// paths are rooted so need not ask the daemon.
//
// A set of links lives as long as what it belongs to, a file, and as long as
// it is used: see [Folder.Make]. While a session holds it nobody takes it
// away. The package touches its folder, and reads the daemon's list of roots.
// It trusts its folder, which no sandbox can be given, as far as the daemon's
// list agrees with it.
package gcroot
