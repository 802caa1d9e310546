package resolve

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/nix/nixeval"
	"claudebox/internal/nix/storepath"
	"claudebox/internal/profile"
)

// resolver is the state of one call of [Packages].
type resolver struct {
	Request
	nixpkgs Nixpkgs
}

// Packages resolves a request. The store paths that it returns are valid, except in
// a dry run, where Missing lists the packages that are not in the store. If packages
// cannot be had, the error is a [diag.Problems] with all of them, in the profile's
// order.
//
// Keep req.Store open until something else protects the paths from the garbage
// collector: the sandbox's processes do not.
func Packages(ctx context.Context, req Request) (Resolution, error) {
	r := &resolver{Request: req}
	if r.Exists == nil {
		r.Exists = func(path string) bool {
			_, err := os.Lstat(path)
			return err == nil
		}
	}
	if err := r.pickNixpkgs(ctx); err != nil {
		return Resolution{}, err
	}
	all := r.want()
	if err := r.lookUp(ctx, all); err != nil {
		return Resolution{}, err
	}
	all = dropRepeated(all)
	if r.DryRun {
		r.Store = r.Foresees
	}
	if r.Store != nil {
		if err := r.realise(ctx, all); err != nil {
			return Resolution{}, err
		}
		if err := r.bringTools(ctx); err != nil {
			return Resolution{}, err
		}
	}
	res := Resolution{
		System: r.System, Nixpkgs: r.nixpkgs, Packages: make([]Package, len(all)), Tools: r.Manifest.Tools,
	}
	for i, w := range all {
		res.Packages[i] = Package{w.attr, w.found.Version, w.outputs, w.origin}
		if r.DryRun && slices.ContainsFunc(w.outputs, r.gone) {
			res.Missing = append(res.Missing, w.attr)
		}
	}
	return res, nil
}

// lookUp finds each package, in the manifest or else by evaluation, and chooses its
// outputs.
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

// inManifest reports whether the manifest has the package, and sets found if so. The
// manifest is not used for packages of a profile with another nixpkgs, except for the
// base packages.
func (r *resolver) inManifest(w *wanted) bool {
	if w.origin != "base" && r.nixpkgs.Path != r.Manifest.Nixpkgs.Path {
		return false
	}
	p, ok := r.Manifest.Packages[w.attr]
	lacks := func(output string) bool { return p.Outputs[output] == "" } // a manifest need not list all
	if !ok || !w.all() && slices.ContainsFunc(w.ask, lacks) {
		return false
	}
	w.found, w.fromManifest = p, true
	return true
}

// problemsOf returns the problems of all packages as a [diag.Problems], or nil.
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

func goneError(path string, why error) error {
	return fmt.Errorf("%s is gone from the store: %w", path, why)
}

// pickNixpkgs sets the nixpkgs that the profile's packages are looked up in, and
// fetches it to the store if the profile names its own. It sets the system to the
// manifest's; if that is not this machine's, it returns an error.
func (r *resolver) pickNixpkgs(ctx context.Context) error {
	if r.System != "" && r.System != r.Manifest.System {
		return diag.Errorf("use claudebox's manifest", diag.Reinstall,
			"it was built for %s, and this is %s", r.Manifest.System, r.System)
	}
	r.System = r.Manifest.System
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

// fetchNixpkgs fetches the nixpkgs of a locked flake reference. The content of such a
// reference never changes, so a cached result is used while its path exists.
func (r *resolver) fetchNixpkgs(ctx context.Context, ref string) error {
	var n Nixpkgs
	entry := r.entry("nixpkgs", r.Evaluator.Identity(), ref)
	if entry.read(&n) && storepath.Check(n.Path) == nil && r.Exists(n.Path) {
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
	entry.write(r.nixpkgs)
	return nil
}

// bringNixpkgs fetches the nixpkgs source if it is missing; without it nothing can be evaluated.
func (r *resolver) bringNixpkgs(ctx context.Context) error {
	return r.bring(ctx, "read nixpkgs", diag.Reinstall, r.nixpkgs.Path)
}

// bringTools fetches those of the manifest's tools that are missing.
func (r *resolver) bringTools(ctx context.Context) error {
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(r.Manifest.Tools)) {
		path, _ := storepath.Of(r.Manifest.Tools[name]) // it was checked with the manifest
		paths = append(paths, path)
	}
	return r.bring(ctx, "use claudebox's own tools", diag.Reinstall, paths...)
}

// bring fetches those of the paths that are missing. If one cannot be fetched, the
// error has op and remedy.
func (r *resolver) bring(ctx context.Context, op, remedy string, paths ...string) error {
	gone := slices.DeleteFunc(paths, r.Exists)
	if len(gone) == 0 {
		return nil
	}
	failed, err := r.fetch(ctx, gone)
	for _, path := range gone {
		if why := failed[path]; why != nil && err == nil {
			err = &diag.Error{Op: op, Err: goneError(path, why), Remedy: remedy}
		}
	}
	return err
}

// wanted is a package that is being resolved: what was asked for, and what was found.
type wanted struct {
	attr   string
	ask    []string // names of the outputs; empty: those that the package installs by default; "*": all
	origin string   // see [Package.Why]
	at     diag.Position

	found        nixeval.Package
	fromManifest bool          // found is from the manifest: the paths can be fetched, but not built
	outputs      []Output      // the chosen outputs of found
	problem      *diag.Problem // why it cannot be had; nil: no problem so far
}

// want returns the profile's packages, then the base ones, which follow them on PATH.
func (r *resolver) want() (all []*wanted) {
	for _, p := range r.Packages {
		at := diag.Position{File: p.Origin.File, Line: p.Origin.Line}
		all = append(all, &wanted{attr: p.Attr, ask: p.Outputs, origin: p.Origin.Rule(), at: at})
	}
	base := r.Manifest.Base
	if r.Toolbox != profile.ToolboxBase {
		base = slices.Concat(base, r.Manifest.Toolbox)
	}
	for _, attr := range base {
		all = append(all, &wanted{attr: attr, origin: "base", at: diag.Position{File: "claudebox's own packages"}})
	}
	return all
}

// fail sets the reason why the package cannot be had.
func (w *wanted) fail(message, remedy string) {
	w.problem = &diag.Problem{Position: w.at, Message: message, Remedy: remedy}
}

// all reports whether every output is asked for.
func (w *wanted) all() bool { return slices.Equal(w.ask, []string{"*"}) }

// choose sets outputs to those of found that were asked for, or problem if one does not exist.
func (w *wanted) choose() {
	names := w.ask
	switch {
	case len(names) == 0:
		names = w.found.Install
	case w.all():
		names = outputNames(w.found)
	}
	w.outputs = nil
	for _, name := range names {
		path, ok := w.found.Outputs[name]
		if !ok {
			has := strings.Join(outputNames(w.found), ", ")
			w.fail(fmt.Sprintf("%s has no output %q; it has %s", w.attr, name, has), "")
			return
		}
		w.outputs = append(w.outputs, Output{Name: name, Path: path})
	}
}

// outputNames returns the names of all outputs of a package, those that it installs by default first.
func outputNames(p nixeval.Package) []string {
	names := slices.Sorted(maps.Keys(p.Outputs))
	others := slices.DeleteFunc(names, func(name string) bool { return slices.Contains(p.Install, name) })
	return slices.Concat(p.Install, others)
}

// dropRepeated removes outputs that an earlier entry for the same package has already,
// and packages that are left without outputs.
func dropRepeated(all []*wanted) []*wanted {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(w *wanted) bool {
		w.outputs = slices.DeleteFunc(w.outputs, func(o Output) bool {
			id := w.attr + "^" + o.Name
			repeated := seen[id]
			seen[id] = true
			return repeated
		})
		return len(w.outputs) == 0
	})
}
