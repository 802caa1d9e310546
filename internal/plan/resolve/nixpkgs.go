package resolve

import (
	"context"
	"fmt"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/nix/storepath"
)

// pickNixpkgs finds the nixpkgs that the profile's packages are looked up in,
// and brings one of the profile's own to the store.
func (r *resolver) pickNixpkgs(ctx context.Context) error {
	if err := r.pickSystem(); err != nil {
		return err
	}
	ref := r.Nixpkgs
	path, isFlake := strings.CutPrefix(ref, "path:")
	if isFlake {
		path, _, _ = strings.Cut(path, "?") // a store path needs no further lock
	}
	switch {
	case ref == "" || ref == "pinned":
		r.nixpkgs = r.Manifest.Nixpkgs
		return nil
	case storepath.Check(path) == nil:
		r.nixpkgs = Nixpkgs{Path: path}
		return r.bringNixpkgs(ctx)
	}
	return r.fetchNixpkgs(ctx, ref)
}

// pickSystem takes the manifest's, which was built for this machine or is
// the wrong one.
func (r *resolver) pickSystem() error {
	if r.System != "" && r.System != r.Manifest.System {
		return diag.Errorf("use claudebox's manifest", "install the claudebox of "+r.System,
			"it was built for %s, and this is %s", r.Manifest.System, r.System)
	}
	r.System = r.Manifest.System
	return nil
}

// fetchNixpkgs has Nix fetch a locked reference, once: the reference names
// one content for ever, so the cache's answer holds while the path is there.
func (r *resolver) fetchNixpkgs(ctx context.Context, ref string) error {
	if r.Evaluator == nil {
		return diag.Errorf("fetch "+ref, "install Nix, or set nixpkgs: pinned", "there is no Nix to fetch it with")
	}
	entry := r.sourceEntry(ref)
	if n, ok := entry.loadSource(); ok && r.Exists(n.Path) {
		r.nixpkgs = n
		return nil
	}
	src, err := r.Evaluator.Fetch(ctx, ref)
	if err != nil {
		return err
	}
	r.nixpkgs = Nixpkgs{Rev: src.Rev, NarHash: src.NarHash, Path: src.Path, LastModified: src.LastModified}
	if err := storepath.Check(src.Path); err != nil {
		return &diag.Error{Op: "fetch " + ref, Err: fmt.Errorf("nix answers with a path that is none: %w", err)}
	}
	entry.saveSource(r.nixpkgs)
	return nil
}

// bringNixpkgs makes the source readable before it is evaluated.
func (r *resolver) bringNixpkgs(ctx context.Context) error {
	path := r.nixpkgs.Path
	if r.Exists(path) {
		return nil
	}
	failed, err := r.fetch(ctx, []string{path})
	if err == nil && failed[path] != nil {
		err = &diag.Error{
			Op: "read nixpkgs", Err: goneError(path, failed[path]),
			Remedy: "install claudebox again, or copy that nixpkgs to the store",
		}
	}
	return err
}
