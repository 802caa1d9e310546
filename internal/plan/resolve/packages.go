package resolve

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/nix/storepath"
	"claudebox/internal/profile"
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
	if err := r.realise(ctx, all); err != nil {
		return Resolution{}, err
	}
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
	lacks := func(output string) bool { return p.Outputs[output] == "" } // a manifest need not list all
	if !ok || !w.all() && slices.ContainsFunc(w.ask, lacks) {
		return false
	}
	w.found, w.fromManifest = &p, true
	return true
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

// tools gives claudebox's own tools: the manifest's, which are fetched where they
// are gone.
func (r *resolver) tools(ctx context.Context) (map[string]string, error) {
	var gone []string
	for _, name := range slices.Sorted(maps.Keys(r.Manifest.Tools)) {
		if path, _ := storepath.Of(r.Manifest.Tools[name]); !r.Exists(path) {
			gone = append(gone, path)
		}
	}
	tools := maps.Clone(r.Manifest.Tools)
	if len(gone) == 0 || r.DryRun {
		return tools, nil
	}
	failed, err := r.fetch(ctx, gone)
	if err != nil {
		return nil, err
	}
	for _, path := range gone {
		if why := failed[path]; why != nil {
			return nil, &diag.Error{Op: "use claudebox's own tools", Err: goneError(path, why), Remedy: reinstall}
		}
	}
	return tools, nil
}

const reinstall = "install claudebox again, so that its packages are fetched"

func goneError(path string, why error) error {
	return fmt.Errorf("%s is gone from the store: %w", path, why)
}

// pickNixpkgs finds the nixpkgs that the profile's packages are looked up in,
// and brings one of the profile's own to the store. The system is the manifest's,
// which was built for this machine or is the wrong one.
func (r *resolver) pickNixpkgs(ctx context.Context) error {
	if r.System != "" && r.System != r.Manifest.System {
		return diag.Errorf("use claudebox's manifest", "install the claudebox of "+r.System,
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

// fetchNixpkgs has Nix fetch a locked reference, once: the reference names
// one content for ever, so the cache's answer holds while the path is there.
func (r *resolver) fetchNixpkgs(ctx context.Context, ref string) error {
	if r.Evaluator == nil {
		return diag.Errorf("fetch "+ref, "install Nix, or set nixpkgs: pinned", "there is no Nix to fetch it with")
	}
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

// wanted is one package on its way from a name to store paths.
type wanted struct {
	attr   string
	ask    []string // outputs by name; empty: what the package installs; "*": all
	origin string   // see [Package.Why]
	at     diag.Position

	found        *ManifestPackage // nil until it is looked up
	fromManifest bool             // nothing but the paths found will do
	outputs      []Output         // of those found, what was asked for
	missing      bool             // see [Resolution.Missing]
	problem      *diag.Problem    // why it cannot be had
}

// want lists the profile's packages, then those that are on PATH behind them.
func (r *resolver) want() (all []*wanted) {
	for _, p := range r.Packages {
		all = append(all, &wanted{attr: p.Attr, ask: p.Outputs, origin: p.Origin.Rule(), at: r.position(p.Origin)})
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

// position turns an origin ("work:12") into a place in that profile's file.
func (r *resolver) position(origin profile.Origin) diag.Position {
	name, number, _ := strings.Cut(string(origin), ":")
	line, _ := strconv.Atoi(number) // none: 0
	for _, s := range r.Sources {
		if s.Name == name {
			return diag.Position{File: s.File, Line: line}
		}
	}
	return diag.Position{File: name, Line: line}
}

// fail notes why the package cannot be had.
func (w *wanted) fail(message, remedy string) {
	w.problem = &diag.Problem{Position: w.at, Message: message, Remedy: remedy}
}

func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}

// all reports whether every output is asked for.
func (w *wanted) all() bool { return slices.Equal(w.ask, []string{"*"}) }

// choose picks the outputs that were asked for out of what was found.
func (w *wanted) choose() {
	names := w.ask
	switch {
	case len(names) == 0:
		names = w.found.Install
	case w.all():
		names = w.found.all()
	}
	w.outputs = nil
	for _, name := range names {
		path, ok := w.found.Outputs[name]
		if !ok {
			w.fail(fmt.Sprintf("%s has no output %q; it has %s", w.attr, name, strings.Join(w.found.all(), ", ")), "")
			return
		}
		w.outputs = append(w.outputs, Output{Name: name, Path: path})
	}
}

// all names the outputs, those to install first.
func (p ManifestPackage) all() []string {
	names := slices.Sorted(maps.Keys(p.Outputs))
	others := slices.DeleteFunc(names, func(name string) bool { return slices.Contains(p.Install, name) })
	return slices.Concat(p.Install, others)
}

// dropRepeated keeps each output of a package where it is named first.
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
