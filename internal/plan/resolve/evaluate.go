package resolve

import (
	"context"
	"maps"
	"slices"

	"claudebox/internal/diag"
	"claudebox/internal/nix/nixeval"
)

// evaluate asks the cache, then the evaluator.
func (r *resolver) evaluate(ctx context.Context, unknown []*wanted) error {
	if len(unknown) == 0 {
		return nil
	}
	if ok, err := r.canEvaluate(unknown); !ok {
		return err
	}
	query := r.query(unknown)
	entry := r.entry(query)
	found, ok := entry.load(query.Attrs)
	if !ok {
		defer entry.turn(ctx)()
		found, ok = entry.load(query.Attrs) // who had the turn before may have asked the same
	}
	if ok {
		assign(unknown, found)
		return nil
	}
	return r.ask(ctx, query, entry, unknown)
}

// canEvaluate reports whether there is somebody to ask. If not, each package
// gets its problem.
func (r *resolver) canEvaluate(unknown []*wanted) (bool, error) {
	if r.nixpkgs.Path == "" {
		return false, diag.Errorf("look up packages",
			"install claudebox by its flake, or set nixpkgs in the profile to a store path",
			"there is no nixpkgs: claudebox brings none of its own")
	}
	if r.Evaluator != nil {
		return true, nil
	}
	for _, w := range unknown {
		message := w.attr + " is not among the packages that claudebox was built with"
		if r.Manifest != nil {
			message += didYouMean(nixeval.Nearest(w.attr, slices.Collect(maps.Keys(r.Manifest.Packages))))
		}
		w.fail(message, "install Nix, which looks other packages up")
	}
	return false, nil
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
	found := split(answers, unknown)
	if problemsOf(unknown) == nil {
		entry.save(found)
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

// split keeps the packages that were found, and notes with the others why not.
func split(answers []nixeval.Package, unknown []*wanted) map[string]ManifestPackage {
	found, failures := map[string]ManifestPackage{}, map[string]*nixeval.Failure{}
	for _, a := range answers {
		found[a.Attr] = ManifestPackage{a.Drv, a.Outputs, a.Install, a.Version, a.MainProgram}
		failures[a.Attr] = a.Failure
	}
	for _, w := range unknown {
		if f := failures[w.attr]; f != nil {
			w.refuse(f)
		}
	}
	return found
}
