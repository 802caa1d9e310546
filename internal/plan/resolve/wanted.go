package resolve

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/nix/nixeval"
	"claudebox/internal/profile"
)

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

// basePosition stands for a file, where a base package cannot be had.
const basePosition = "claudebox's own packages"

// want lists the profile's packages, then the base ones.
func (r *resolver) want() []*wanted {
	base := r.base()
	all := make([]*wanted, 0, len(r.Packages)+len(base))
	for _, p := range r.Packages {
		all = append(all, &wanted{attr: p.Attr, ask: p.Outputs, origin: p.Origin.Rule(), at: r.position(p.Origin)})
	}
	for _, attr := range base {
		all = append(all, &wanted{attr: attr, origin: "base", at: diag.Position{File: basePosition}})
	}
	return all
}

// base lists what is on PATH behind the profile's packages.
func (r *resolver) base() []string {
	if r.Toolbox == profile.ToolboxBase {
		return r.Manifest.Base
	}
	return slices.Concat(r.Manifest.Base, r.Manifest.Toolbox)
}

// position turns an origin ("work:12") into a place in that profile's file.
func (r *resolver) position(origin profile.Origin) diag.Position {
	text := string(origin)
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return diag.Position{File: text}
	}
	line, _ := strconv.Atoi(text[i+1:])
	for _, s := range r.Sources {
		if s.Name == text[:i] {
			return diag.Position{File: s.File, Line: line}
		}
	}
	return diag.Position{File: text[:i], Line: line}
}

// fail notes why the package cannot be had.
func (w *wanted) fail(message, remedy string) {
	w.problem = &diag.Problem{Position: w.at, Message: message, Remedy: remedy}
}

// refuse notes the reason that an evaluation gave.
func (w *wanted) refuse(f *nixeval.Failure) {
	w.fail(f.Message+didYouMean(f.Similar), f.Remedy)
}

func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}

// choose picks the outputs that were asked for out of what was found.
func (w *wanted) choose() {
	names := w.ask
	switch {
	case len(names) == 0:
		names = w.found.Install
	case slices.Equal(names, []string{"*"}):
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

// has reports whether p can answer an ask for outputs. A manifest need not list
// all that a package has.
func (p ManifestPackage) has(outputs []string) bool {
	return !slices.ContainsFunc(outputs, func(name string) bool { return p.Outputs[name] == "" })
}

// all names the outputs, those to install first.
func (p ManifestPackage) all() []string {
	names := slices.Sorted(maps.Keys(p.Outputs))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(p.rank(a), p.rank(b)) })
	return names
}

// rank is an output's place among those to install, or behind them all.
func (p ManifestPackage) rank(name string) int {
	if i := slices.Index(p.Install, name); i >= 0 {
		return i
	}
	return len(p.Install)
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
