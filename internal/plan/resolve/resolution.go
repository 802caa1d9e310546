package resolve

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
