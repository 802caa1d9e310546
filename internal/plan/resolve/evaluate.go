package resolve

import (
	"context"
	"slices"

	"claudebox/internal/diag"
	"claudebox/internal/nix/nixeval"
)

// evaluate looks packages up in the cache, or else with the evaluator, and sets
// found or problem of each.
func (r *resolver) evaluate(ctx context.Context, unknown []*wanted) error {
	switch {
	case len(unknown) == 0:
		return nil
	case r.nixpkgs.Path == "":
		return diag.Errorf("look up packages",
			"install claudebox by its flake, or set nixpkgs in the profile to a store path",
			"there is no nixpkgs: claudebox brings none of its own")
	}
	query := r.query(unknown)
	entry := r.entry("packages", r.Evaluator.Identity(), query.Nixpkgs, query.System, query.Attrs)
	found, ok := entry.packages(query.Attrs)
	if !ok {
		defer entry.lock(ctx)()
		found, ok = entry.packages(query.Attrs) // the process that had the lock may have evaluated the same
	}
	if ok {
		assign(unknown, found)
		return nil
	}
	return r.ask(ctx, query, entry, unknown)
}

// query returns the query for the packages: each attribute once, sorted.
func (r *resolver) query(unknown []*wanted) nixeval.Query {
	attrs := make([]string, len(unknown))
	for i, w := range unknown {
		attrs[i] = w.attr
	}
	slices.Sort(attrs)
	return nixeval.Query{Nixpkgs: r.nixpkgs.Path, System: r.System, Attrs: slices.Compact(attrs)}
}

// ask evaluates the query and sets found or problem of each package. The result is
// written to entry if every package was found.
func (r *resolver) ask(ctx context.Context, query nixeval.Query, entry entry, unknown []*wanted) error {
	if err := r.bringNixpkgs(ctx); err != nil {
		return err
	}
	answers, err := r.Evaluator.Evaluate(ctx, query)
	if err != nil {
		return err
	}
	found := map[string]nixeval.Package{}
	for _, a := range answers {
		found[a.Attr] = a
	}
	assign(unknown, found)
	if problemsOf(unknown) == nil {
		entry.write(found)
	}
	return nil
}

// assign sets found of each package, and its problem if the evaluation of it failed.
func assign(all []*wanted, found map[string]nixeval.Package) {
	for _, w := range all {
		w.found = found[w.attr]
		if f := w.found.Failure; f != nil {
			w.fail(f.Message, f.Remedy)
		}
	}
}
