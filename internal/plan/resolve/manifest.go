package resolve

// Manifest is what Nix knew when claudebox was built, so that a launch needs
// no evaluation. The flake writes it as JSON to share/claudebox/manifest.json
// beside the binary's bin folder; it is read back strictly.
type Manifest struct {
	Version  int                        `json:"version"` // 1
	System   string                     `json:"system"`
	Nixpkgs  Nixpkgs                    `json:"nixpkgs"`
	Tools    map[string]string          `json:"tools"`    // name → file below a store path; see [ToolNames]
	Base     []string                   `json:"base"`     // attributes that are on PATH in every sandbox, in order
	Toolbox  []string                   `json:"toolbox"`  // and those after them, unless a profile leaves them out
	Packages map[string]ManifestPackage `json:"packages"` // by attribute path
	// References is a file for [ReadReferences], about everything that the
	// manifest has installed; empty: none.
	References string `json:"references,omitempty"`
}

// ManifestPackage is one package that the manifest knows.
type ManifestPackage struct {
	Drv         string            `json:"drv,omitempty"`
	Outputs     map[string]string `json:"outputs"` // name → store path
	Install     []string          `json:"install"` // what meta.outputsToInstall says
	Version     string            `json:"version,omitempty"`
	MainProgram string            `json:"mainProgram,omitempty"`
}

// Names of the manifest's tools. Bwrap, Env, Bash, Git and Nix are programs
// that a launch cannot do without (Nix may be missing when no manifest is
// there); the rest serves when it is there.
const (
	ToolBwrap    = "bwrap"    // bubblewrap
	ToolEnv      = "env"      // coreutils' env: /usr/bin/env, and what starts a command that has to be looked up inside
	ToolBash     = "bash"     // SHELL and /bin/sh
	ToolGit      = "git"      // reads the user's identity
	ToolNix      = "nix"      // nix-instantiate and nix stand beside it
	ToolCacert   = "cacert"   // certificate bundle, when the host has none
	ToolLocale   = "locale"   // LOCALE_ARCHIVE
	ToolTerminfo = "terminfo" // one folder of terminal descriptions
	ToolEmpty    = "empty"    // an empty read-only file, to cover hidden files with
	ToolAgent    = "agent"    // the agent, when the flake pins one
	ToolLoader   = "loader"   // nix-ld's loader for prebuilt programs
	ToolLibs     = "libs"     // folder of libraries for prebuilt programs
	ToolNode     = "node"     // for an agent that is a node script
)
