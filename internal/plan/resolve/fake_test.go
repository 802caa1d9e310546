package resolve_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"claudebox/internal/nix/nixeval"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/profile"
)

// path makes a store path of a name.
func path(name string) string { return "/nix/store/00bgd045z0d4icpbc2yyz4gx48ak44la-" + name }

// has is how a path may come into a fakeStore.
type has string

const (
	valid     has = "valid"     // it is there
	fetchable has = "fetchable" // a cache has it
	buildable has = "buildable" // said of "DRV!OUTPUTS"
)

// fakeStore is a store by path. What it does is noted in calls.
type fakeStore struct {
	paths map[string]has
	calls *[]string
}

func (s fakeStore) Pin(_ context.Context, paths []string) ([]string, error) {
	*s.calls = append(*s.calls, "pin "+names(paths))
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return s.paths[p] != valid }), nil
}

func (s fakeStore) Realise(_ context.Context, targets []string) (map[string]error, error) {
	*s.calls = append(*s.calls, "realise "+names(targets))
	failed := map[string]error{}
	for _, target := range targets {
		if s.paths[target] == "" {
			failed[target] = errors.New("no substituter can build it")
		}
	}
	return failed, nil
}

// names shortens store paths to what tells them apart.
func names(paths []string) string {
	return strings.ReplaceAll(strings.Join(paths, " "), path(""), "")
}

// fakeNixpkgs is an evaluator by attribute.
type fakeNixpkgs struct {
	packages map[string]nixeval.Package
	calls    *[]string
}

func (n fakeNixpkgs) Identity() string { return "fake" }

func (n fakeNixpkgs) Evaluate(_ context.Context, q nixeval.Query) ([]nixeval.Package, error) {
	call := fmt.Sprintf("evaluate %s in %s", strings.Join(q.Attrs, " "), names([]string{q.Nixpkgs}))
	if q.Write {
		call += " and write"
	}
	*n.calls = append(*n.calls, call)
	answers := make([]nixeval.Package, len(q.Attrs))
	for i, attr := range q.Attrs {
		p, ok := n.packages[attr]
		if !ok {
			p.Failure = &nixeval.Failure{Message: attr + " is not in nixpkgs; did you mean near?"}
		}
		p.Attr = attr
		answers[i] = p
	}
	return answers, nil
}

func (n fakeNixpkgs) Fetch(_ context.Context, ref string) (nixeval.Source, error) {
	*n.calls = append(*n.calls, "fetch "+ref)
	return nixeval.Source{Path: path("fetched"), Rev: "rev"}, nil
}

// world is a request with its fakes, and what they were asked.
type world struct {
	resolve.Request
	calls []string
}

// onDisk is what lstat finds, in every world.
func onDisk(p string) bool { return !strings.Contains(p, "gone") }

// newWorld has a manifest with coreutils as base, git and a tool, and a
// nixpkgs with go (two outputs) and jq.
func newWorld(packages ...string) *world {
	w := &world{}
	w.Request = resolve.Request{
		Manifest: &resolve.Manifest{
			Version: 1, System: "x86_64-linux", Nixpkgs: resolve.Nixpkgs{Path: path("nixpkgs"), Rev: "r1"},
			Tools: map[string]string{"bwrap": path("bubblewrap") + "/bin/bwrap"},
			Base:  []string{"coreutils"},
			Packages: map[string]nixeval.Package{
				"coreutils": {Outputs: map[string]string{"out": path("coreutils")}, Install: []string{"out"}, Version: "9.7"},
				"git": {
					Outputs: map[string]string{"out": path("git"), "doc": path("git-doc")}, Install: []string{"out"},
					Version: "2.47",
				},
			},
		},
		System:    "x86_64-linux",
		Nixpkgs:   "pinned",
		Packages:  profilePackages(packages),
		Store:     fakeStore{map[string]has{path("nixpkgs"): valid, path("go"): valid, path("go-bin"): valid}, &w.calls},
		Evaluator: fakeNixpkgs{nixpkgs(), &w.calls},
		Exists:    onDisk,
	}
	return w
}

func nixpkgs() map[string]nixeval.Package {
	return map[string]nixeval.Package{
		"go": {
			Drv: path("go.drv"), Outputs: map[string]string{"out": path("go"), "bin": path("go-bin")},
			Install: []string{"bin", "out"}, Version: "1.25",
		},
		"jq": {Drv: path("jq.drv"), Outputs: map[string]string{"out": path("jq")}, Install: []string{"out"}},
	}
}

// profilePackages reads "attr^out,dev", one a line of the profile work.
func profilePackages(texts []string) []profile.Package {
	packages := make([]profile.Package, len(texts))
	for i, text := range texts {
		attr, outputs, asked := strings.Cut(text, "^")
		packages[i] = profile.Package{Attr: attr, Origin: profile.Origin{Name: "work", File: "~/work.yaml", Line: i + 1}}
		if asked {
			packages[i].Outputs = strings.Split(outputs, ",")
		}
	}
	return packages
}

// run resolves, and gives the packages as "attr^outputs (origin)".
func (w *world) run(t *testing.T) ([]string, error) {
	t.Helper()
	res, err := resolve.Packages(t.Context(), w.Request)
	var got []string
	for _, p := range res.Packages {
		var outputs []string
		for _, o := range p.Outputs {
			outputs = append(outputs, o.Name)
		}
		text := p.Attr + "^" + strings.Join(outputs, ",") + " (" + p.Why + ")"
		if slices.Contains(res.Missing, p.Attr) {
			text += " missing"
		}
		got = append(got, text)
	}
	return got, err
}

// everything is a nixpkgs that has every attribute, as go.
type everything struct{ fakeNixpkgs }

func (e everything) Evaluate(_ context.Context, q nixeval.Query) ([]nixeval.Package, error) {
	answers := make([]nixeval.Package, len(q.Attrs))
	for i, attr := range q.Attrs {
		answers[i] = nixpkgs()["go"]
		answers[i].Attr = attr
	}
	return answers, nil
}

// changing is a nixpkgs that gives everything as go when derivations are
// written, as if an earlier answer had been a stale one from the cache.
type changing struct{ fakeNixpkgs }

func (c changing) Evaluate(ctx context.Context, q nixeval.Query) ([]nixeval.Package, error) {
	answers, err := c.fakeNixpkgs.Evaluate(ctx, q)
	if q.Write {
		return everything(c).Evaluate(ctx, q)
	}
	return answers, err
}
