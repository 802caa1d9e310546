package resolve_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"claudebox/internal/diag"
	"claudebox/internal/nix/nixeval"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/profile"
)

func TestPackages(t *testing.T) {
	for name, tc := range map[string]struct {
		packages    []string
		change      func(*world)
		want, calls []string
	}{
		"needs nobody when the manifest knows all": {
			packages: []string{"git"},
			want:     []string{"git^out (profile work:1)", "coreutils^out (base)"},
		},
		"keeps the profile's order and puts base packages behind": {
			packages: []string{"go", "git"},
			want:     []string{"go^bin,out (profile work:1)", "git^out (profile work:2)", "coreutils^out (base)"},
			calls:    []string{"evaluate go in nixpkgs", "pin go go-bin nixpkgs"},
		},
		"puts the toolbox behind the base": {
			change: func(w *world) { w.Manifest.Toolbox = []string{"git"} },
			want:   []string{"coreutils^out (base)", "git^out (base)"},
		},
		"leaves the toolbox out where the profile does": {
			change: func(w *world) { w.Manifest.Toolbox, w.Toolbox = []string{"git"}, profile.ToolboxBase },
			want:   []string{"coreutils^out (base)"},
		},
		"keeps the first of two": {
			packages: []string{"coreutils", "git", "git"},
			want:     []string{"coreutils^out (profile work:1)", "git^out (profile work:2)"},
		},
		"evaluates a package once that is named twice": {
			packages: []string{"go^out", "go^bin"},
			want:     []string{"go^out (profile work:1)", "go^bin (profile work:2)", "coreutils^out (base)"},
			calls:    []string{"evaluate go in nixpkgs", "pin go go-bin nixpkgs"},
		},
		"keeps an output that is named later": {
			packages: []string{"git^doc", "git"},
			want:     []string{"git^doc (profile work:1)", "git^out (profile work:2)", "coreutils^out (base)"},
		},
		"takes outputs in the order of the ask": {
			packages: []string{"go^out,bin"},
			want:     []string{"go^out,bin (profile work:1)", "coreutils^out (base)"},
			calls:    []string{"evaluate go in nixpkgs", "pin go go-bin nixpkgs"},
		},
		"takes all outputs for a star, those to install first": {
			packages: []string{"git^*"},
			want:     []string{"git^out,doc (profile work:1)", "coreutils^out (base)"},
		},
		"evaluates what the manifest has without the output": {
			packages: []string{"git^bin"},
			change: func(w *world) {
				packages := nixpkgs()
				packages["git"] = packages["go"]
				w.Evaluator = fakeNixpkgs{packages, &w.calls}
			},
			want:  []string{"git^bin (profile work:1)", "coreutils^out (base)"},
			calls: []string{"evaluate git in nixpkgs", "pin go-bin nixpkgs"},
		},
		"fetches what is not valid": {
			packages: []string{"jq"},
			change:   func(w *world) { w.store(path("jq"), fetchable) },
			want:     []string{"jq^out (profile work:1)", "coreutils^out (base)"},
			calls:    []string{"evaluate jq in nixpkgs", "pin jq nixpkgs", "realise jq"},
		},
		"builds what cannot be fetched": {
			packages: []string{"jq", "go"},
			change:   func(w *world) { w.store(path("jq.drv")+"!out", buildable) },
			want:     []string{"jq^out (profile work:1)", "go^bin,out (profile work:2)", "coreutils^out (base)"},
			calls: []string{
				"evaluate go jq in nixpkgs", "pin go go-bin jq nixpkgs", "realise jq",
				"evaluate jq in nixpkgs and write", "pin jq.drv", "realise jq.drv!out",
			},
		},
		"builds what the newest evaluation says": {
			packages: []string{"jq"},
			change: func(w *world) {
				w.Evaluator = changing{w.Evaluator.(fakeNixpkgs)}
				w.store(path("go.drv")+"!bin,out", buildable)
			},
			want: []string{"jq^bin,out (profile work:1)", "coreutils^out (base)"},
			calls: []string{
				"evaluate jq in nixpkgs", "pin jq nixpkgs", "realise jq",
				"evaluate jq in nixpkgs and write", "pin go.drv", "realise go.drv!bin,out",
			},
		},
		"fetches what is gone of the manifest": {
			packages: []string{"gone"},
			change: func(w *world) {
				w.Manifest.Packages["gone"] = nixeval.Package{Outputs: map[string]string{"out": path("gone")}, Install: []string{"out"}}
				w.store(path("gone"), fetchable)
			},
			want:  []string{"gone^out (profile work:1)", "coreutils^out (base)"},
			calls: []string{"pin gone", "realise gone"},
		},
		"fetches a tool that is gone": {
			change: func(w *world) {
				w.Manifest.Tools["bwrap"] = path("gone") + "/bin/bwrap"
				w.store(path("gone"), fetchable)
			},
			want:  []string{"coreutils^out (base)"},
			calls: []string{"pin gone", "realise gone"},
		},
		"brings a nixpkgs of the profile's own that is not there": {
			packages: []string{"go"},
			change:   func(w *world) { w.Nixpkgs = path("gone"); w.store(path("gone"), fetchable) },
			want:     []string{"go^bin,out (profile work:1)", "coreutils^out (base)"},
			calls: []string{
				"pin gone", "realise gone", // before the profile's packages are looked at
				"pin gone", "realise gone", // the fake's disk is none the wiser
				"evaluate go in gone", "pin go go-bin gone",
			},
		},
		"fetches no tool in a dry run": {
			change: func(w *world) { w.Manifest.Tools["bwrap"], w.DryRun = path("gone")+"/bin/bwrap", true },
			want:   []string{"coreutils^out (base)"},
		},
		"does nothing but mark in a dry run": {
			packages: []string{"git", "jq", "gone"},
			change: func(w *world) {
				packages := nixpkgs()
				gone := packages["jq"]
				gone.Outputs = map[string]string{"out": path("gone")}
				packages["gone"] = gone
				w.Evaluator, w.DryRun = fakeNixpkgs{packages, &w.calls}, true
			},
			want: []string{
				"git^out (profile work:1)", "jq^out (profile work:2)", "gone^out (profile work:3) missing", "coreutils^out (base)",
			},
			calls: []string{"evaluate gone jq in nixpkgs"},
		},
		"looks in a nixpkgs of the profile's own, but for base packages": {
			packages: []string{"go", "coreutils^bin"},
			change: func(w *world) {
				packages := nixpkgs()
				packages["coreutils"] = packages["go"]
				w.Evaluator, w.Nixpkgs = fakeNixpkgs{packages, &w.calls}, "path:"+path("other")
			},
			want:  []string{"go^bin,out (profile work:1)", "coreutils^bin (profile work:2)", "coreutils^out (base)"},
			calls: []string{"evaluate coreutils go in other", "pin go go-bin other"},
		},
		"takes the manifest for the same nixpkgs by path": {
			packages: []string{"git"},
			change:   func(w *world) { w.Nixpkgs = "path:" + path("nixpkgs") + "?narHash=sha256-0000" },
			want:     []string{"git^out (profile work:1)", "coreutils^out (base)"},
		},
		"fetches a nixpkgs named by reference": {
			packages: []string{"go"},
			change:   func(w *world) { w.Nixpkgs = "github:NixOS/nixpkgs/0123" },
			want:     []string{"go^bin,out (profile work:1)", "coreutils^out (base)"},
			calls:    []string{"fetch github:NixOS/nixpkgs/0123", "evaluate go in fetched", "pin go go-bin fetched"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(tc.packages...)
			if tc.change != nil {
				tc.change(w)
			}
			got, err := w.run(t)
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("Packages = %q, %v; want %q", got, err, tc.want)
			}
			if !slices.Equal(w.calls, tc.calls) {
				t.Errorf("calls = %q; want %q", w.calls, tc.calls)
			}
		})
	}
}

// store says how a path may come into the world's store.
func (w *world) store(path string, how has) { w.Store.(fakeStore).paths[path] = how }

func TestResolutionCarriesThePins(t *testing.T) {
	got, err := resolve.Packages(t.Context(), newWorld("git").Request)
	want := resolve.Resolution{
		System:  "x86_64-linux",
		Nixpkgs: resolve.Nixpkgs{Path: path("nixpkgs"), Rev: "r1"},
		Packages: []resolve.Package{
			{Attr: "git", Version: "2.47", Outputs: []resolve.Output{{"out", path("git")}}, Why: "profile work:1"},
			{Attr: "coreutils", Version: "9.7", Outputs: []resolve.Output{{"out", path("coreutils")}}, Why: "base"},
		},
		Tools: map[string]string{"bwrap": path("bubblewrap") + "/bin/bwrap"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Packages = %+v, %v; want %+v", got, err, want)
	}
}

func TestProblems(t *testing.T) {
	at := func(line int) diag.Position { return diag.Position{File: "~/work.yaml", Line: line} }
	for name, tc := range map[string]struct {
		packages []string
		change   func(*world)
		want     diag.Problems
	}{
		"come all at once, each with its place and what may have been meant": {
			packages: []string{"nope", "git", "go^doc", "nada"},
			want: diag.Problems{
				{Position: at(1), Message: "nope is not in nixpkgs; did you mean near?"},
				{Position: at(3), Message: `go has no output "doc"; it has bin, out`},
				{Position: at(4), Message: "nada is not in nixpkgs; did you mean near?"},
			},
		},
		"name the outputs that there are": {
			packages: []string{"go^doc"},
			want:     diag.Problems{{Position: at(1), Message: `go has no output "doc"; it has bin, out`}},
		},
		"name a path that is gone of the manifest": {
			packages: []string{"gone"},
			change: func(w *world) {
				w.Manifest.Packages["gone"] = nixeval.Package{Outputs: map[string]string{"out": path("gone")}, Install: []string{"out"}}
			},
			want: diag.Problems{{
				Position: at(1), Message: "gone: " + path("gone") + " is gone from the store: no substituter can build it",
				Remedy: "install claudebox again",
			}},
		},
		"tell why a build failed": {
			packages: []string{"jq"},
			want:     diag.Problems{{Position: at(1), Message: "jq cannot be built: no substituter can build it"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(tc.packages...)
			if tc.change != nil {
				tc.change(w)
			}
			_, err := w.run(t)
			var got diag.Problems
			if !errors.As(err, &got) || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("Packages fails with %#v; want %#v", err, tc.want)
			}
		})
	}
}

func TestErrorsThatConcernAll(t *testing.T) {
	for name, change := range map[string]func(*world){
		"a manifest for another system":             func(w *world) { w.System = "aarch64-linux" },
		"a tool that is gone and cannot be fetched": func(w *world) { w.Manifest.Tools["bwrap"] = path("gone") + "/bin/bwrap" },
		"a nixpkgs that is gone": func(w *world) {
			w.Manifest.Nixpkgs.Path = path("gone")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("go")
			change(w)
			_, err := w.run(t)
			var said *diag.Error
			if !errors.As(err, &said) || said.Remedy == "" {
				t.Errorf("Packages = %v; want an error with a remedy", err)
			}
		})
	}
}
