// Package nixeval looks up attribute paths in a nixpkgs. One nix-instantiate
// process evaluates one expression (packages.nix) for any number of packages; for
// each package that is not available it gives the reason.
//
// An evaluation reads only the nixpkgs it is given: restrict-eval is on,
// building and fetching during evaluation are off, and the process gets an
// environment made here, so that NIX_PATH, the user's nixpkgs and the user's
// Nix configuration have no effect. It writes to the store only when
// derivations are asked for ([Query.Write]).
//
// The caller gives the path of the program; it is not looked up in PATH.
package nixeval
