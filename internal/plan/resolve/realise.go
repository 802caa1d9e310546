package resolve

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"claudebox/internal/diag"
)

// realise fetches or builds the outputs that are missing. Those that are in doubt are pinned,
// with the nixpkgs that they come from, and the store says which are valid.
func (r *resolver) realise(ctx context.Context, all []*wanted) error {
	var paths, nixpkgs []string
	for _, w := range all {
		for _, o := range w.outputs {
			if r.doubts(w, o) {
				paths = append(paths, o.Path)
			}
		}
		if !w.fromManifest {
			nixpkgs = []string{r.nixpkgs.Path}
		}
	}
	if len(paths) == 0 {
		return nil
	}
	slices.Sort(paths)
	failed, err := r.fetch(ctx, slices.Compact(paths), nixpkgs...)
	if err != nil || len(failed) == 0 {
		return err
	}
	return r.build(ctx, all, failed)
}

// doubts reports whether the store must be asked for an output of w. One from the manifest is
// looked for on disk, as claudebox's own closure protects it.
func (r *resolver) doubts(w *wanted, o Output) bool { return !w.fromManifest || r.gone(o) }

// gone reports whether an output is not on disk.
func (r *resolver) gone(o Output) bool { return !r.Exists(o.Path) }

// fetch pins paths and fetches those that are not valid. failed has the reason for
// each path that cannot be fetched. The paths in beside are pinned only.
func (r *resolver) fetch(ctx context.Context, paths []string, beside ...string) (failed map[string]error, err error) {
	valid, err := r.Store.Pin(ctx, slices.Concat(paths, beside))
	if err != nil {
		return nil, err
	}
	targets := slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return slices.Contains(valid, p) })
	if len(targets) == 0 {
		return nil, nil
	}
	return r.Store.Realise(ctx, targets)
}

// build builds the packages that could not be fetched; failed is from [resolver.fetch].
// Packages from the manifest are not built but reported: they may come from another
// nixpkgs, so it is not known here how to build them.
func (r *resolver) build(ctx context.Context, all []*wanted, failed map[string]error) error {
	var unbuilt []*wanted
	for _, w := range all {
		i := slices.IndexFunc(w.outputs, func(o Output) bool { return r.doubts(w, o) && failed[o.Path] != nil })
		switch {
		case i < 0:
		case w.fromManifest:
			path := w.outputs[i].Path
			w.fail(w.attr+": "+goneError(path, failed[path]).Error(), diag.Reinstall)
		default:
			unbuilt = append(unbuilt, w)
		}
	}
	if err := problemsOf(all); err != nil || len(unbuilt) == 0 || r.DryRun {
		return err // a dry run cannot know more: only a build can fail as one
	}
	return r.buildAll(ctx, unbuilt)
}

// buildAll evaluates the packages again, now writing their derivations to the store, and builds them.
func (r *resolver) buildAll(ctx context.Context, unbuilt []*wanted) error {
	query := r.query(unbuilt)
	query.Write = true
	err := cmp.Or(r.ask(ctx, query, entry{}, unbuilt), problemsOf(unbuilt))
	if err != nil {
		return err
	}
	targets, drvs := map[string]*wanted{}, []string{}
	for _, w := range unbuilt {
		w.choose() // again: the first choice may have been from a cached evaluation
		names := make([]string, len(w.outputs))
		for i, o := range w.outputs {
			names[i] = o.Name
		}
		slices.Sort(names)
		targets[w.found.Drv+"!"+strings.Join(names, ",")] = w
		drvs = append(drvs, w.found.Drv)
	}
	if _, err := r.Store.Pin(ctx, drvs); err != nil {
		return err
	}
	failed, err := r.Store.Realise(ctx, slices.Sorted(maps.Keys(targets)))
	for target, why := range failed {
		w := targets[target]
		w.fail(w.attr+" cannot be built: "+why.Error(), "")
	}
	return cmp.Or(err, problemsOf(unbuilt))
}
