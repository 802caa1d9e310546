package resolve

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"claudebox/internal/diag"
	"claudebox/internal/nix/storepath"
)

// resolver is one run of [Packages].
type resolver struct {
	Request
	nixpkgs Nixpkgs
}

// Packages resolves a request. Its store paths are valid, except in a dry
// run, which marks packages that are missing. Packages that cannot be had
// are reported all at once, as [diag.Problems] in the profile's order.
//
// Keep req.Store open until something else holds the paths: the sandbox's
// processes do not.
func Packages(ctx context.Context, req Request) (Resolution, error) {
	r := &resolver{Request: req}
	if r.Exists == nil {
		r.Exists = onDisk
	}
	if err := r.pickNixpkgs(ctx); err != nil {
		return Resolution{}, err
	}
	all := r.want()
	if err := r.lookUp(ctx, all); err != nil {
		return Resolution{}, err
	}
	all = dropRepeated(all)
	if err := r.realise(ctx, all); err != nil {
		return Resolution{}, err
	}
	return r.result(ctx, all)
}

func onDisk(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// lookUp finds each package, in the manifest or else by evaluation, and
// picks its outputs.
func (r *resolver) lookUp(ctx context.Context, all []*wanted) error {
	var unknown []*wanted
	for _, w := range all {
		if !r.inManifest(w) {
			unknown = append(unknown, w)
		}
	}
	if err := r.evaluate(ctx, unknown); err != nil {
		return err
	}
	for _, w := range all {
		if w.problem == nil {
			w.choose()
		}
	}
	return problemsOf(all)
}

// inManifest answers from the manifest. A profile with a nixpkgs of its own
// is answered by that one, but for the base packages.
func (r *resolver) inManifest(w *wanted) bool {
	if w.origin != "base" && r.nixpkgs.Path != r.Manifest.Nixpkgs.Path {
		return false
	}
	p, ok := r.Manifest.Packages[w.attr]
	if !ok || !p.has(w.named()) {
		return false
	}
	w.found, w.fromManifest = &p, true
	return true
}

// named is the outputs that were asked for by name.
func (w *wanted) named() []string {
	if slices.Equal(w.ask, []string{"*"}) {
		return nil
	}
	return w.ask
}

// problemsOf collects what cannot be had; nil when all can.
func problemsOf(all []*wanted) error {
	var problems diag.Problems
	for _, w := range all {
		if w.problem != nil {
			problems = append(problems, *w.problem)
		}
	}
	if problems == nil {
		return nil
	}
	return problems
}

// result is the Resolution of packages that are there.
func (r *resolver) result(ctx context.Context, all []*wanted) (Resolution, error) {
	tools, err := r.tools(ctx)
	if err != nil {
		return Resolution{}, err
	}
	res := Resolution{System: r.System, Nixpkgs: r.nixpkgs, Packages: make([]Package, len(all)), Tools: tools}
	for i, w := range all {
		res.Packages[i] = Package{w.attr, w.found.Version, w.outputs, w.origin}
		if w.missing {
			res.Missing = append(res.Missing, w.attr)
		}
	}
	return res, nil
}

// tools gives claudebox's own tools: the manifest's, which must be there.
func (r *resolver) tools(ctx context.Context) (map[string]string, error) {
	tools := map[string]string{}
	var gone []string
	for _, name := range slices.Sorted(maps.Keys(r.Manifest.Tools)) {
		file := r.Manifest.Tools[name]
		tools[name] = file
		if path, _ := storepath.Of(file); !r.Exists(path) {
			gone = append(gone, path)
		}
	}
	return tools, r.restore(ctx, gone)
}

// restore fetches paths that claudebox itself needs.
func (r *resolver) restore(ctx context.Context, gone []string) error {
	if len(gone) == 0 || r.DryRun {
		return nil
	}
	failed, err := r.fetch(ctx, gone)
	if err != nil {
		return err
	}
	for _, path := range gone {
		if why := failed[path]; why != nil {
			return &diag.Error{Op: "use claudebox's own tools", Err: goneError(path, why), Remedy: reinstall}
		}
	}
	return nil
}

const reinstall = "install claudebox again, so that its packages are fetched"

func goneError(path string, why error) error {
	return fmt.Errorf("%s is gone from the store: %w", path, why)
}
