// Package nixeval runs nix-instantiate for two tasks: [Evaluator.Evaluate] finds packages in a nixpkgs by their
// attribute paths ("python3Packages.requests"), and [Evaluator.Fetch] copies a nixpkgs into the store. [Evaluator.Eval]
// is what both use, for other expressions of claudebox's own.
//
// One process evaluates one expression (packages.nix) for any number of packages. For each package that is not
// available the answer gives the reason. The expression can read only the nixpkgs that it is given (restrict-eval),
// and can neither build nor fetch anything. Only with [Query.Write] does it write to the store: the derivations.
//
// Every process gets an environment made here, so that NIX_PATH, the user's nixpkgs and the user's Nix configuration
// have no effect. The caller gives the path of nix-instantiate; PATH is not searched for it.
package nixeval
