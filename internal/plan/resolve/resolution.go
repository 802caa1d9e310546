package resolve

import (
	"context"

	"claudebox/internal/nix/nixeval"
	"claudebox/internal/profile"
)

// Store is the part of a Nix store that resolving needs;
// [claudebox/internal/nix/nixdaemon.Client] is one. It is not called if every path
// of a request exists, so it should connect only at the first call.
type Store interface {
	// Pin protects paths from the garbage collector for as long as the Store
	// is open. After that it returns those of them that are valid.
	Pin(ctx context.Context, paths []string) (valid []string, err error)
	// Realise fetches or builds targets: "PATH", or "DRV!OUTPUT,OUTPUT", sorted.
	// failed has the reason for each target that cannot be had; err is set if the
	// operation failed as a whole.
	Realise(ctx context.Context, targets []string) (failed map[string]error, err error)
}

// Evaluator looks packages up in a nixpkgs; [nixeval.Evaluator] is one.
type Evaluator interface {
	// Evaluate returns one package for each attribute of the query, in their order.
	Evaluate(ctx context.Context, q nixeval.Query) ([]nixeval.Package, error)
	// Fetch copies the source that a locked flake reference names to the store.
	Fetch(ctx context.Context, ref string) (nixeval.Source, error)
	// Identity returns a text that differs between evaluators that may give
	// different answers; it is part of the cache's keys.
	Identity() string
}

// Request says what to resolve, and with which manifest, store and evaluator.
type Request struct {
	Manifest *Manifest
	System   string            // of this machine, "x86_64-linux"; empty: the manifest's
	Packages []profile.Package // in the profile's order
	Toolbox  string            // [profile.Profile.Toolbox]: [profile.ToolboxBase] leaves the manifest's Toolbox out
	Nixpkgs  string            // [profile.Profile.Nixpkgs]

	Store     Store
	Evaluator Evaluator
	Cache     string // folder for cached evaluations, created when needed; empty: no cache
	DryRun    bool   // report which packages are missing, but fetch and build none
	Foresees  Store  // of a dry run: its Realise only says what could not be had; nil: nobody is asked

	// Exists reports whether a store path is on disk. Nil means by lstat.
	Exists func(path string) bool
}

// Resolution has the store paths of a profile's packages and of claudebox's own
// tools. Nothing in it depends on the user or the current folder.
type Resolution struct {
	System   string // "x86_64-linux"
	Nixpkgs  Nixpkgs
	Packages []Package         // the profile's in its order, then the base ones
	Missing  []string          // attributes of the packages that are not in the store; set by a dry run only
	Tools    map[string]string // files and folders by name, see [Manifest.Tools]
	Closure  []string          // every store path a session needs, sorted; set by the caller if it is wanted
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
