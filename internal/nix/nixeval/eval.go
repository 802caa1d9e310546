package nixeval

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"claudebox/internal/diag"
)

//go:embed packages.nix
var packagesExpr string

//go:embed fetch.nix
var fetchExpr string

// Evaluator runs nix-instantiate, Nix's evaluator.
type Evaluator struct {
	// Program is nix-instantiate, by its absolute path.
	Program string
	// Env is what Nix needs to know about this machine (NIX_REMOTE, NIX_CONF_DIR,
	// NIX_DAEMON_SOCKET_PATH …), as NAME=VALUE. The process gets nothing else of
	// the caller's environment.
	Env []string
}

// Query says which packages to look up, and where.
type Query struct {
	Nixpkgs string   // store path
	System  string   // "x86_64-linux"
	Attrs   []string // attribute paths: "python3Packages.requests"
	Write   bool     // also write the derivations, so that they can be built
}

// Package is what was found at one attribute path, or why nothing was.
type Package struct {
	Attr    string            `json:"attr"`
	Version string            `json:"version,omitempty"`
	Drv     string            `json:"drv"`     // path of the derivation
	Outputs map[string]string `json:"outputs"` // name → store path
	Install []string          `json:"install"` // meta.outputsToInstall, or the default output if that is not set
	// Failure is why there is no package; nil when there is one.
	Failure *Failure `json:"-"`
}

// Identity is a text for the key of a cache: it changes whenever the evaluator
// or its expression changes, either of which can change an answer.
func (e Evaluator) Identity() string { return e.Program + "\n" + packagesExpr }

// Evaluate looks the attributes up and answers in their order. A package that
// is not available is not an error: it has a Failure. The error is for what keeps
// the evaluator from working at all.
//
// Some faults of a package (abort, a type error, endless recursion) cannot be
// caught in the Nix language and make the process fail for all packages. Then each half
// of the list gets a process of its own, and so on, until each such package is alone in
// its list. The processes run one after the other.
func (e Evaluator) Evaluate(ctx context.Context, q Query) ([]Package, error) {
	run := &run{Evaluator: e, query: q}
	packages, err := run.lookUp(ctx, q.Attrs)
	if err != nil {
		return nil, &diag.Error{Op: "evaluate packages of " + q.Nixpkgs, Err: err, Remedy: remedyFor(err)}
	}
	return packages, nil
}

// run is one call of Evaluate, which may take several processes.
type run struct {
	Evaluator
	query Query
	// sound says that the package set itself can be evaluated. This is checked once, and only
	// after a process failed: otherwise each package would get the blame.
	sound bool
}

// maxWants is how long the JSON list of attribute paths may be, in bytes. The list is one argument of the process, and
// the kernel allows 128 KiB for one.
const maxWants = 96 << 10

// lookUp returns the packages of attrs, in their order.
func (r *run) lookUp(ctx context.Context, attrs []string) ([]Package, error) {
	if len(attrs) == 0 {
		return nil, nil
	}
	list := wants(attrs)
	if len(list) > maxWants && len(attrs) > 1 {
		return r.evaluateHalves(ctx, attrs)
	}
	var answers []answer
	err := r.instantiate(ctx, "all", list, &answers)
	switch {
	case isEvalError(err): // at least one of attrs broke the process
		return r.blame(ctx, attrs, err)
	case err != nil:
		return nil, err
	case len(answers) != len(attrs):
		return nil, fmt.Errorf("bug: %d answers for %d packages", len(answers), len(attrs))
	}
	packages := make([]Package, len(attrs))
	for i, attr := range attrs {
		packages[i] = answers[i].pkg(attr)
		if f := packages[i].Failure; f != nil && f.Message == "" {
			if f.Message, err = r.reasonThrown(ctx, attr); err != nil {
				return nil, err
			}
		}
	}
	return packages, nil
}

// blame finds out which of attrs made a process for all of them fail, with the error broke. Those get a Failure; the
// others are looked up as usual.
func (r *run) blame(ctx context.Context, attrs []string, broke error) ([]Package, error) {
	if !r.sound {
		if err := r.instantiate(ctx, "probe", "[]", new(bool)); err != nil {
			return nil, err
		}
		r.sound = true
	}
	if len(attrs) > 1 {
		return r.evaluateHalves(ctx, attrs)
	}
	message := attrs[0] + " cannot be evaluated: " + broke.Error()
	return []Package{{Attr: attrs[0], Failure: &Failure{Message: message}}}, nil
}

// evaluateHalves looks up the first half of attrs, then the second.
func (r *run) evaluateHalves(ctx context.Context, attrs []string) ([]Package, error) {
	first, err := r.lookUp(ctx, attrs[:len(attrs)/2])
	if err != nil {
		return nil, err
	}
	second, err := r.lookUp(ctx, attrs[len(attrs)/2:])
	return append(first, second...), err
}

// reasonThrown returns the message of nixpkgs that refuses a package for a reason that packages.nix cannot see, such as
// a name that was removed. It takes a process for this package alone: the answer for many packages leaves the message
// out.
func (r *run) reasonThrown(ctx context.Context, attr string) (message string, err error) {
	switch err := r.instantiate(ctx, "force", wants([]string{attr}), new([]string)); {
	case err == nil:
		return "bug: " + attr + " fails among others and works alone", nil
	case isEvalError(err):
		return attr + ": " + err.Error(), nil
	default:
		return "", err
	}
}

// wants writes attribute paths as the JSON list that packages.nix expects.
func wants(attrs []string) string {
	paths := make([][]string, len(attrs))
	for i, attr := range attrs {
		paths[i] = strings.Split(attr, ".")
	}
	text, _ := json.Marshal(paths) // strings cannot fail
	return string(text)
}

// instantiate runs packages.nix in one of its modes and decodes what it prints into answer. wants is the list of
// attribute paths, see [wants].
func (r *run) instantiate(ctx context.Context, mode, wants string, answer any) error {
	args := []string{
		// Every option that matters is given here, since nix.conf may have set it.
		"--option", "restrict-eval", "true", "-I", "src=" + r.query.Nixpkgs,
		"--option", "pure-eval", "false",
		"--option", "allow-import-from-derivation", "false", "--option", "allowed-uris", "",
		"--option", "allow-unsafe-native-code-during-evaluation", "false",
		"--argstr", "src", r.query.Nixpkgs, "--argstr", "system", r.query.System,
		"--argstr", "mode", mode, "--argstr", "wants", wants,
	}
	if r.query.Write {
		args = append(args, "--read-write-mode")
	}
	return r.Eval(ctx, packagesExpr, args, answer)
}

// Source is a nixpkgs that [Evaluator.Fetch] has copied into the store.
type Source struct {
	Path    string `json:"path"` // store path
	NarHash string `json:"narHash"`
	Rev     string `json:"rev"`

	LastModified int64 `json:"lastModified"` // seconds since 1970; 0: not known
}

// Fetch copies what a locked flake reference names ("github:NixOS/nixpkgs/REV") into the store, and evaluates nothing
// of it. Nix's cache of downloads is a temporary folder here, which Fetch removes when it is done.
func (e Evaluator) Fetch(ctx context.Context, ref string) (src Source, err error) {
	cache, err := os.MkdirTemp("", "claudebox-fetch-")
	if err == nil {
		defer os.RemoveAll(cache)
		e.Env = append(slices.Clone(e.Env), "XDG_CACHE_HOME="+cache)
		err = e.Eval(ctx, fetchExpr, []string{
			"--extra-experimental-features", "nix-command flakes", "--read-write-mode",
			"--option", "restrict-eval", "false", "--option", "pure-eval", "false", "--argstr", "ref", ref,
		}, &src)
	}
	if err != nil {
		return Source{}, &diag.Error{Op: "fetch " + ref, Err: err}
	}
	return src, nil
}
