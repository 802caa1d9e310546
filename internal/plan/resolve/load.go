package resolve

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"claudebox/internal/diag"
	"claudebox/internal/nix/storepath"
)

const (
	manifestVersion = 1
	maxManifest     = 64 << 20 // bytes; 10,000 packages take 5 MB
)

// ReadManifest reads a manifest strictly: what it gives needs no further
// check. The error names the first fault; a manifest is not written by hand.
func ReadManifest(r io.Reader) (*Manifest, error) {
	m, err := decodeManifest(io.LimitReader(r, maxManifest))
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return nil, &diag.Error{Op: "read claudebox's manifest", Err: err, Remedy: "install claudebox again"}
	}
	return m, nil
}

func decodeManifest(r io.Reader) (*Manifest, error) {
	m := &Manifest{}
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("something follows the end")
	}
	return m, nil
}

func (m *Manifest) check() error {
	switch {
	case m.Version != manifestVersion:
		return fmt.Errorf("it has version %d; this claudebox reads version %d", m.Version, manifestVersion)
	case m.System == "":
		return fmt.Errorf("it names no system")
	}
	for _, check := range []func() error{
		m.checkTools, m.checkPackages, m.checkBase, m.Nixpkgs.check,
		m.checkReferences,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manifest) checkTools() error {
	for _, name := range slices.Sorted(maps.Keys(m.Tools)) {
		if _, err := storepath.Of(m.Tools[name]); err != nil {
			return fmt.Errorf("tool %s: %w", name, err)
		}
	}
	return nil
}

func (m *Manifest) checkReferences() error {
	if m.References == "" {
		return nil
	}
	if err := storepath.Check(m.References); err != nil {
		return fmt.Errorf("references: %w", err)
	}
	return nil
}

func (m *Manifest) checkPackages() error {
	for _, attr := range slices.Sorted(maps.Keys(m.Packages)) {
		if err := m.Packages[attr].check(); err != nil {
			return fmt.Errorf("package %s: %w", attr, err)
		}
	}
	return nil
}

func (m *Manifest) checkBase() error {
	for _, attr := range slices.Concat(m.Base, m.Toolbox) {
		if _, ok := m.Packages[attr]; !ok {
			return fmt.Errorf("base package %q is not among its packages", attr)
		}
	}
	return nil
}

func (n Nixpkgs) check() error {
	if n.Path == "" {
		return nil
	}
	if err := storepath.Check(n.Path); err != nil {
		return fmt.Errorf("nixpkgs: %w", err)
	}
	return nil
}

// check holds for packages from a cache, too.
func (p ManifestPackage) check() error {
	if p.Drv != "" {
		if err := storepath.Check(p.Drv); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Outputs)) {
		if err := storepath.Check(p.Outputs[name]); err != nil {
			return fmt.Errorf("output %s: %w", name, err)
		}
	}
	if len(p.Install) == 0 {
		return fmt.Errorf("it installs no output")
	}
	for _, name := range p.Install {
		if p.Outputs[name] == "" {
			return fmt.Errorf("it has no output %q to install", name)
		}
	}
	return nil
}
