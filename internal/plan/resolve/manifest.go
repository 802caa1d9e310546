package resolve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"claudebox/internal/diag"
	"claudebox/internal/nix/storepath"
)

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

const (
	manifestVersion = 1
	maxManifest     = 64 << 20 // bytes; 10,000 packages take 5 MB
)

// ReadManifest reads a manifest strictly: what it gives needs no further
// check. The error names the first fault; a manifest is not written by hand.
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
		return nil, &diag.Error{Op: "read claudebox's manifest", Err: err, Remedy: "install claudebox again"}
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
		if err := m.Packages[attr].check(); err != nil {
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

// check holds for packages from a cache, too.
func (p ManifestPackage) check() error {
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
