// Package nixeval looks attribute paths up in a nixpkgs: one expression
// (packages.nix), one nix-instantiate process for as many packages as are
// wanted, and for each that cannot be had the reason.
//
// An evaluation reads the nixpkgs it is given and nothing else: restrict-eval
// is on, building and fetching during evaluation are off, and the process
// gets an environment made here, so that neither NIX_PATH nor the user's
// nixpkgs and Nix configuration has a say. It writes to the store only when
// derivations are asked for ([Query.Write]).
//
// The program is run by the path the caller gives; nothing is looked up.
package nixeval
