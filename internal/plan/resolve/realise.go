package resolve

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"claudebox/internal/diag"
)

// realise makes the outputs valid, by what is missing only.
func (r *resolver) realise(ctx context.Context, all []*wanted) error {
	if r.DryRun {
		for _, w := range all {
			w.missing = slices.ContainsFunc(w.outputs, func(o Output) bool { return !r.Exists(o.Path) })
		}
		return nil
	}
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

// absent gives the packages with an output that is not there. What the
// manifest pins is looked for on disk: claudebox's own closure holds it. The
// rest is pinned now, and the store asked.
func (r *resolver) absent(ctx context.Context, all []*wanted) ([]*wanted, error) {
	evaluated := pathsOf(only(all, func(w *wanted) bool { return !w.fromManifest }))
	var valid map[string]bool
	if len(evaluated) > 0 {
		paths, err := r.pin(ctx, append(evaluated, r.nixpkgs.Path))
		if err != nil {
			return nil, err
		}
		valid = setOf(paths)
	}
	return only(all, func(w *wanted) bool {
		return slices.ContainsFunc(w.outputs, func(o Output) bool {
			return w.fromManifest && !r.Exists(o.Path) || !w.fromManifest && !valid[o.Path]
		})
	}), nil
}

// only gives those that keep says, in their order.
func only(all []*wanted, keep func(*wanted) bool) []*wanted {
	return slices.DeleteFunc(slices.Clone(all), func(w *wanted) bool { return !keep(w) })
}

// fetch pins paths and has each that is not valid fetched.
func (r *resolver) fetch(ctx context.Context, paths []string) (failed map[string]error, err error) {
	valid, err := r.pin(ctx, paths)
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

func (r *resolver) pin(ctx context.Context, paths []string) ([]string, error) {
	if r.Store == nil {
		return nil, diag.Errorf("fetch store paths", "install Nix for all users, and start its daemon",
			"there is no Nix store to ask")
	}
	return r.Store.Pin(ctx, paths)
}

// build has the packages built that could not be fetched. What the manifest
// pins is not: another nixpkgs may have made it, so nothing here could tell
// how.
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

// buildAll writes the derivations by one more evaluation and builds them.
func (r *resolver) buildAll(ctx context.Context, unbuilt []*wanted) error {
	query := r.query(unbuilt)
	query.Write = true
	err := cmp.Or(r.ask(ctx, query, entry{}, unbuilt), problemsOf(unbuilt))
	if err != nil {
		return err
	}
	targets, drvs := map[string]*wanted{}, []string{}
	for _, w := range unbuilt {
		w.choose() // among what this evaluation found, which is newer than a cached one
		names := make([]string, len(w.outputs))
		for i, o := range w.outputs {
			names[i] = o.Name
		}
		targets[w.found.Drv+"!"+strings.Join(names, ",")] = w
		drvs = append(drvs, w.found.Drv)
	}
	if _, err := r.pin(ctx, drvs); err != nil {
		return err
	}
	failed, err := r.Store.Realise(ctx, slices.Sorted(maps.Keys(targets)))
	for target, why := range failed {
		w := targets[target]
		w.fail(w.attr+" cannot be built: "+why.Error(), "")
	}
	return cmp.Or(err, problemsOf(unbuilt))
}

// pathsOf gives each chosen output once.
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
