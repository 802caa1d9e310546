package resolve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"claudebox/internal/diag"
	"claudebox/internal/nix/nixeval"
	"claudebox/internal/nix/storepath"
)

// Manifest has the packages and tools that Nix evaluated when claudebox was built,
// so that a launch needs no evaluation. The flake writes it as JSON to
// share/claudebox/manifest.json beside the binary's bin folder.
type Manifest struct {
	Version  int                        `json:"version"` // 1
	System   string                     `json:"system"`
	Nixpkgs  Nixpkgs                    `json:"nixpkgs"`
	Tools    map[string]string          `json:"tools"`    // name → file below a store path; see [ToolBwrap]
	Base     []string                   `json:"base"`     // attributes that are on PATH in every sandbox, in order
	Toolbox  []string                   `json:"toolbox"`  // those that follow on PATH, unless a profile leaves them out
	Packages map[string]nixeval.Package `json:"packages"` // by attribute path
	// References is the path of a file for [ReadReferences] that covers all
	// store paths which the manifest installs; empty: there is none.
	References string `json:"references,omitempty"`
}

// Names of the manifest's tools. A launch needs the programs Bwrap, Env, Bash, Git
// and Nix (Nix may be missing if there is no manifest); the others are optional.
const (
	ToolBwrap    = "bwrap"    // bubblewrap
	ToolEnv      = "env"      // coreutils' env: for /usr/bin/env, and to start commands that must be looked up inside
	ToolBash     = "bash"     // SHELL and /bin/sh
	ToolGit      = "git"      // for hand-overs between the user's git folders and the agent's
	ToolNix      = "nix"      // nix-instantiate and nix are in the same folder
	ToolCacert   = "cacert"   // certificate bundle, when the host has none
	ToolLocale   = "locale"   // LOCALE_ARCHIVE
	ToolTerminfo = "terminfo" // one folder of terminal descriptions
	ToolAgent    = "agent"    // the agent, when the flake pins one
	ToolLoader   = "loader"   // nix-ld's loader for prebuilt programs
	ToolLibs     = "libs"     // folder of libraries for prebuilt programs
	ToolNode     = "node"     // for an agent that is a node script
)

const (
	manifestVersion = 1
	maxManifest     = 64 << 20 // bytes; 10,000 packages take 5 MB
)

// ReadManifest reads and checks a manifest; callers need no further check. It refuses
// unknown keys. The error names the first fault only, as nobody writes a manifest by hand.
func ReadManifest(r io.Reader) (*Manifest, error) {
	m := &Manifest{}
	d := json.NewDecoder(io.LimitReader(r, maxManifest))
	d.DisallowUnknownFields()
	err := d.Decode(m)
	if err == nil {
		if _, end := d.Token(); end != io.EOF {
			err = errors.New("something follows the end")
		}
	}
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return nil, &diag.Error{Op: "read claudebox's manifest", Err: err, Remedy: diag.Reinstall}
	}
	return m, nil
}

func (m *Manifest) check() error {
	switch {
	case m.Version != manifestVersion:
		return fmt.Errorf("it has version %d; this claudebox reads version %d", m.Version, manifestVersion)
	case m.System == "":
		return errors.New("it names no system")
	}
	for _, name := range slices.Sorted(maps.Keys(m.Tools)) {
		if _, err := storepath.Of(m.Tools[name]); err != nil {
			return fmt.Errorf("tool %s: %w", name, err)
		}
	}
	for _, attr := range slices.Sorted(maps.Keys(m.Packages)) {
		if err := checkPackage(m.Packages[attr]); err != nil {
			return fmt.Errorf("package %s: %w", attr, err)
		}
	}
	for _, attr := range slices.Concat(m.Base, m.Toolbox) {
		if _, ok := m.Packages[attr]; !ok {
			return fmt.Errorf("base package %q is not among its packages", attr)
		}
	}
	if err := checkIfSaid(m.Nixpkgs.Path); err != nil {
		return fmt.Errorf("nixpkgs: %w", err)
	}
	if err := checkIfSaid(m.References); err != nil {
		return fmt.Errorf("references: %w", err)
	}
	return nil
}

func checkIfSaid(path string) error {
	if path == "" {
		return nil
	}
	return storepath.Check(path)
}

// checkPackage returns what is wrong with a package of a manifest or of the cache, or nil.
func checkPackage(p nixeval.Package) error {
	if err := checkIfSaid(p.Drv); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(p.Outputs)) {
		if err := storepath.Check(p.Outputs[name]); err != nil {
			return fmt.Errorf("output %s: %w", name, err)
		}
	}
	if len(p.Install) == 0 {
		return errors.New("it installs no output")
	}
	for _, name := range p.Install {
		if p.Outputs[name] == "" {
			return fmt.Errorf("it has no output %q to install", name)
		}
	}
	return nil
}
