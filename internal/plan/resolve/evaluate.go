package resolve

import (
	"context"
	"maps"
	"slices"

	"claudebox/internal/diag"
	"claudebox/internal/nix/nixeval"
)

// evaluate asks the cache, then the evaluator. Where there is nobody to ask, each
// package gets its problem.
func (r *resolver) evaluate(ctx context.Context, unknown []*wanted) error {
	switch {
	case len(unknown) == 0:
		return nil
	case r.nixpkgs.Path == "":
		return diag.Errorf("look up packages",
			"install claudebox by its flake, or set nixpkgs in the profile to a store path",
			"there is no nixpkgs: claudebox brings none of its own")
	case r.Evaluator == nil:
		for _, w := range unknown {
			message := w.attr + " is not among the packages that claudebox was built with"
			if r.Manifest != nil {
				message += didYouMean(nixeval.Nearest(w.attr, slices.Collect(maps.Keys(r.Manifest.Packages))))
			}
			w.fail(message, "install Nix, which looks other packages up")
		}
		return nil
	}
	query := r.query(unknown)
	entry := r.entry("packages", r.Evaluator.Identity(), query.Nixpkgs, query.System, query.Attrs)
	found, ok := entry.packages(query.Attrs)
	if !ok {
		defer entry.turn(ctx)()
		found, ok = entry.packages(query.Attrs) // who had the turn before may have asked the same
	}
	if ok {
		assign(unknown, found)
		return nil
	}
	return r.ask(ctx, query, entry, unknown)
}

// query asks for each attribute once, in a fixed order.
func (r *resolver) query(unknown []*wanted) nixeval.Query {
	attrs := make([]string, len(unknown))
	for i, w := range unknown {
		attrs[i] = w.attr
	}
	slices.Sort(attrs)
	return nixeval.Query{Nixpkgs: r.nixpkgs.Path, System: r.System, Attrs: slices.Compact(attrs)}
}

// ask evaluates. The answer is cached when every package was found.
func (r *resolver) ask(ctx context.Context, query nixeval.Query, entry entry, unknown []*wanted) error {
	if err := r.bringNixpkgs(ctx); err != nil {
		return err
	}
	answers, err := r.Evaluator.Evaluate(ctx, query)
	if err != nil {
		return err
	}
	found, failures := map[string]ManifestPackage{}, map[string]*nixeval.Failure{}
	for _, a := range answers {
		found[a.Attr] = ManifestPackage{a.Drv, a.Outputs, a.Install, a.Version, a.MainProgram}
		failures[a.Attr] = a.Failure
	}
	for _, w := range unknown {
		if f := failures[w.attr]; f != nil {
			w.fail(f.Message+didYouMean(f.Similar), f.Remedy)
		}
	}
	if problemsOf(unknown) == nil {
		entry.write(found)
	}
	assign(unknown, found)
	return nil
}

// assign hands out what was found, to those that can be had.
func assign(all []*wanted, found map[string]ManifestPackage) {
	for _, w := range all {
		if p, ok := found[w.attr]; ok && w.problem == nil {
			w.found = &p
		}
	}
}
