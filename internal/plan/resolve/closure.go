package resolve

import (
	"os"

	"claudebox/internal/diag"
	"claudebox/internal/nix/storepath"
)

// ClosureOf returns the closure of a resolution's packages, tools and nixpkgs, and of
// roots: all that a sandbox may see of the store. It calls ask, for the daemon's
// answer, only if the manifest does not know all references.
func (m *Manifest) ClosureOf(
	res Resolution, roots []string, ask func(roots []string) ([]string, error),
) ([]string, error) {
	for _, pkg := range res.Packages {
		for _, output := range pkg.Outputs {
			roots = append(roots, output.Path)
		}
	}
	for _, tool := range res.Tools {
		if path, err := storepath.Of(tool); err == nil {
			roots = append(roots, path)
		}
	}
	if res.Nixpkgs.Path != "" {
		roots = append(roots, res.Nixpkgs.Path)
	}
	if references, err := m.readReferences(); err != nil {
		return nil, err
	} else if paths, known := references.Closure(roots); known {
		return paths, nil
	}
	return ask(roots)
}

// readReferences reads which of claudebox's own store paths refers to which; nil if the manifest does not say.
func (m *Manifest) readReferences() (References, error) {
	if m.References == "" {
		return nil, nil
	}
	f, err := os.Open(m.References)
	if err != nil {
		return nil, diag.Wrap("read what claudebox was built with", err, diag.Reinstall)
	}
	defer f.Close()
	return ReadReferences(f)
}
