package resolve

// Resolution is what a profile's packages and claudebox's own tools are, by
// store path. Nothing in it depends on the user or the folder.
type Resolution struct {
	System   string // "x86_64-linux"
	Nixpkgs  Nixpkgs
	Packages []Package       // the profile's in its order, then the base ones
	Tools    map[string]Tool // by name, see [Manifest]
	Closure  []string        // every store path a session needs, sorted; only when asked for
}

// Nixpkgs is the pin that attribute paths are looked up in.
type Nixpkgs struct {
	Rev     string `json:"rev,omitempty"`
	NarHash string `json:"narHash,omitempty"`
	Path    string `json:"path,omitempty"` // the source, as a store path
	// LastModified is when the revision was made, in seconds since 1970; 0: not known.
	LastModified int64 `json:"lastModified,omitempty"`
}

// Package is one resolved attribute: the outputs that were asked for.
type Package struct {
	Attr        string
	Version     string
	MainProgram string
	Outputs     []Output // in the order of the ask
	Origin      string   // "profile work:12" or "base"
	Missing     bool     // planned, but not in the store: a dry run found it so
}

// Output is one output of a derivation.
type Output struct {
	Name string
	Path string // store path
}

// Tool is a file that claudebox itself needs: a program, the certificate
// bundle, the locale archive.
type Tool struct {
	Path string // the file or folder
}
