package resolve

import (
	"context"

	"claudebox/internal/nix/nixeval"
	"claudebox/internal/profile"
)

// Store is the part of a Nix store that resolving needs;
// [claudebox/internal/nix/nixdaemon.Store] is one. It is not used, so need not
// connect, while every path is there.
type Store interface {
	// Pin keeps paths from the garbage collector for as long as the Store
	// is open, and then gives those that are valid.
	Pin(ctx context.Context, paths []string) (valid []string, err error)
	// Realise fetches or builds targets: "PATH", or "DRV!OUTPUT,OUTPUT". It
	// says why for each that cannot be had; the error concerns them all.
	Realise(ctx context.Context, targets []string) (failed map[string]error, err error)
}

// Evaluator looks packages up in a nixpkgs; [nixeval.Evaluator] is one.
type Evaluator interface {
	// Evaluate answers in the order of the query's attributes.
	Evaluate(ctx context.Context, q nixeval.Query) ([]nixeval.Package, error)
	// Fetch brings what a locked flake reference names to the store.
	Fetch(ctx context.Context, ref string) (nixeval.Source, error)
	// Identity is what of the evaluator can change an answer.
	Identity() string
}

// Request is what to resolve, and by what means.
type Request struct {
	Manifest *Manifest
	System   string            // of this machine, "x86_64-linux"; empty: the manifest's
	Packages []profile.Package // in the profile's order
	Toolbox  string            // whether the manifest's toolbox is there, too
	Sources  []profile.Source  // the profile's files, to say where a package is named
	Nixpkgs  string            // [profile.Profile.Nixpkgs]

	Store     Store
	Evaluator Evaluator // nil: there is no Nix to evaluate with
	Cache     string    // folder for evaluations, made when needed; empty: none
	DryRun    bool      // say which packages are missing, but fetch and build none

	// Exists reports whether a store path is on disk. Nil means by lstat.
	Exists func(path string) bool
}

// Resolution is what a profile's packages and claudebox's own tools are, by
// store path. Nothing in it depends on the user or the folder.
type Resolution struct {
	System   string // "x86_64-linux"
	Nixpkgs  Nixpkgs
	Packages []Package         // the profile's in its order, then the base ones
	Missing  []string          // those of them that are not in the store, by attribute: a dry run found it so
	Tools    map[string]string // files and folders by name, see [Manifest]
	Closure  []string          // every store path a session needs, sorted; only when asked for
}

// Nixpkgs is the pinned package set.
type Nixpkgs struct {
	Rev     string `json:"rev,omitempty"`
	NarHash string `json:"narHash,omitempty"`
	Path    string `json:"path,omitempty"` // the source, as a store path

	LastModified int64 `json:"lastModified,omitempty"` // seconds since 1970, as flakes lock it; 0: not known
}

// Package is one pinned package.
type Package struct {
	Attr    string   `json:"attr"`
	Version string   `json:"version,omitempty"`
	Outputs []Output `json:"outputs"` // those that were asked for, in that order
	Why     string   `json:"why"`     // "base" or "profile work:12"
}

// Output is one output of a package.
type Output struct {
	Name string `json:"name"`
	Path string `json:"path"`
}
