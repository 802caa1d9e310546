package resolve

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
)

// realise fetches or builds the outputs that are missing.
func (r *resolver) realise(ctx context.Context, all []*wanted) error {
	absent, err := r.absent(ctx, all)
	if err != nil || len(absent) == 0 {
		return err
	}
	failed, err := r.fetch(ctx, pathsOf(absent))
	if err != nil {
		return err
	}
	return r.build(ctx, absent, failed)
}

// absent returns the packages with a missing output. Those from the manifest are
// looked for on disk, as claudebox's own closure protects them. The others are
// pinned now, and the store says which are valid.
func (r *resolver) absent(ctx context.Context, all []*wanted) ([]*wanted, error) {
	evaluated := pathsOf(only(all, func(w *wanted) bool { return !w.fromManifest }))
	var valid map[string]bool
	if len(evaluated) > 0 {
		paths, err := r.Store.Pin(ctx, append(evaluated, r.nixpkgs.Path))
		if err != nil {
			return nil, err
		}
		valid = setOf(paths)
	}
	return only(all, func(w *wanted) bool {
		return slices.ContainsFunc(w.outputs, func(o Output) bool {
			return w.fromManifest && r.gone(o) || !w.fromManifest && !valid[o.Path]
		})
	}), nil
}

// gone reports whether an output is not on disk.
func (r *resolver) gone(o Output) bool { return !r.Exists(o.Path) }

// only returns the packages for which keep returns true, in the same order.
func only(all []*wanted, keep func(*wanted) bool) []*wanted {
	return slices.DeleteFunc(slices.Clone(all), func(w *wanted) bool { return !keep(w) })
}

// fetch pins paths and fetches those that are not valid. failed has the reason for
// each path that cannot be fetched.
func (r *resolver) fetch(ctx context.Context, paths []string) (failed map[string]error, err error) {
	valid, err := r.Store.Pin(ctx, paths)
	if err != nil {
		return nil, err
	}
	there := setOf(valid)
	targets := slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return there[p] })
	if len(targets) == 0 {
		return nil, nil
	}
	return r.Store.Realise(ctx, targets)
}

// build builds the packages that could not be fetched; failed is from [resolver.fetch].
// Packages from the manifest are not built but reported: they may come from another
// nixpkgs, so it is not known here how to build them.
func (r *resolver) build(ctx context.Context, absent []*wanted, failed map[string]error) error {
	var unbuilt []*wanted
	for _, w := range absent {
		i := slices.IndexFunc(w.outputs, func(o Output) bool { return failed[o.Path] != nil })
		switch {
		case i < 0:
		case w.fromManifest:
			path := w.outputs[i].Path
			w.fail(w.attr+": "+goneError(path, failed[path]).Error(), reinstall)
		default:
			unbuilt = append(unbuilt, w)
		}
	}
	if err := problemsOf(absent); err != nil || len(unbuilt) == 0 {
		return err
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

// pathsOf returns the store paths of the packages' chosen outputs, sorted, without duplicates.
func pathsOf(all []*wanted) []string {
	var paths []string
	for _, w := range all {
		for _, o := range w.outputs {
			paths = append(paths, o.Path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

func setOf(paths []string) map[string]bool {
	set := make(map[string]bool, len(paths))
	for _, p := range paths {
		set[p] = true
	}
	return set
}
