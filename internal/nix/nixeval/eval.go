package nixeval

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"claudebox/internal/diag"
)

//go:embed packages.nix
var packagesExpr string

//go:embed fetch.nix
var fetchExpr string

// Evaluator runs Nix's evaluator.
type Evaluator struct {
	// Program is nix-instantiate, by its absolute path.
	Program string
	// Env is what Nix has to know of this machine (NIX_REMOTE, NIX_CONF_DIR,
	// NIX_DAEMON_SOCKET_PATH …), as NAME=VALUE. It is all that the process
	// knows of the caller's environment.
	Env []string
	// Jobs bounds the processes that run at once when a package breaks the
	// common one; 0 means 2.
	Jobs int
}

// Query is what to look up.
type Query struct {
	Nixpkgs string   // store path
	System  string   // "x86_64-linux"
	Attrs   []string // attribute paths: "python3Packages.requests"
	Write   bool     // also write the derivations, so that they can be built
}

// Package is the answer for one attribute path.
type Package struct {
	Attr        string            `json:"attr"`
	Version     string            `json:"version,omitempty"`
	MainProgram string            `json:"mainProgram,omitempty"`
	Drv         string            `json:"drv"`
	Outputs     map[string]string `json:"outputs"` // name → store path
	Install     []string          `json:"install"` // what meta.outputsToInstall says, else the default output
	// Failure is why there is no package; nil when there is one.
	Failure *Failure `json:"-"`
}

// Identity is what of the evaluator itself can change an answer, for the key
// of a cache.
func (e Evaluator) Identity() string { return e.Program + "\n" + packagesExpr }

// Evaluate looks the attributes up and answers in their order. A package that
// cannot be had is no error but has a Failure; the error is for what keeps
// the evaluator from working at all.
//
// Some faults of a package (abort, a type error, endless recursion) cannot be
// caught in the language and break the process for all. Then the list is cut
// in halves until they stand alone: two processes a level for each.
func (e Evaluator) Evaluate(ctx context.Context, q Query) ([]Package, error) {
	run := &run{Evaluator: e, query: q, slots: make(chan struct{}, cmp.Or(e.Jobs, 2))}
	run.sound = sync.OnceValue(func() error { return run.instantiate(ctx, "probe", "[]", new(bool)) })
	packages, err := run.lookUp(ctx, q.Attrs)
	if err != nil {
		return nil, &diag.Error{Op: "evaluate packages of " + q.Nixpkgs, Err: err, Remedy: remedyFor(err)}
	}
	return packages, nil
}

// run is one evaluation with the processes it takes.
type run struct {
	Evaluator
	query Query
	slots chan struct{} // one for each process that may run
	// sound reports whether the package set itself has a value, asked once and
	// only when a process broke: else every package would be to blame.
	sound func() error
}

// maxWants keeps a command line's word far below the kernel's 128 KiB.
const maxWants = 96 << 10

// lookUp answers in the order of attrs.
func (r *run) lookUp(ctx context.Context, attrs []string) ([]Package, error) {
	if len(attrs) == 0 {
		return nil, nil
	}
	wants := wants(attrs)
	if len(wants) > maxWants && len(attrs) > 1 {
		return r.halve(ctx, attrs)
	}
	var answers []answer
	switch err := r.instantiate(ctx, "all", wants, &answers); {
	case isEvalError(err): // at least one of them broke the process
		if err := r.sound(); err != nil {
			return nil, err
		}
		if len(attrs) > 1 {
			return r.halve(ctx, attrs)
		}
		message := attrs[0] + " cannot be evaluated: " + err.Error()
		return []Package{{Attr: attrs[0], Failure: &Failure{Reason: Faulty, Message: message}}}, nil
	case err != nil:
		return nil, err
	case len(answers) != len(attrs):
		return nil, fmt.Errorf("bug: %d answers for %d packages", len(answers), len(attrs))
	}
	return r.judge(ctx, attrs, answers)
}

// halve looks both halves up at once.
func (r *run) halve(ctx context.Context, attrs []string) ([]Package, error) {
	mid := len(attrs) / 2
	halves := [2][]string{attrs[:mid], attrs[mid:]}
	return gather(len(halves), func(i int) ([]Package, error) { return r.lookUp(ctx, halves[i]) })
}

// judge turns answers into packages, asking again for reasons that were kept
// back.
func (r *run) judge(ctx context.Context, attrs []string, answers []answer) ([]Package, error) {
	return gather(len(attrs), func(i int) ([]Package, error) {
		p := answers[i].pkg(attrs[i])
		if p.Failure == nil || p.Failure.Reason != Throws {
			return []Package{p}, nil
		}
		err := r.instantiate(ctx, "force", wants(attrs[i:i+1]), new([]string))
		if err != nil && !isEvalError(err) {
			return nil, err
		}
		p.Failure = &Failure{Reason: Faulty, Message: "bug: " + attrs[i] + " fails among others and works alone"}
		if err != nil { // what nixpkgs says of a name it has taken away
			p.Failure = &Failure{Reason: Throws, Message: attrs[i] + ": " + err.Error()}
		}
		return []Package{p}, nil
	})
}

// gather runs n parts at once and joins what they give, in order. The first
// part that fails gives the error.
func gather(n int, part func(int) ([]Package, error)) ([]Package, error) {
	parts, errs := make([][]Package, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { parts[i], errs[i] = part(i) })
	}
	all.Wait()
	var joined []Package
	for i := range n {
		if errs[i] != nil {
			return nil, errs[i]
		}
		joined = append(joined, parts[i]...)
	}
	return joined, nil
}

// wants is the list as JSON, which needs no quoting in Nix.
func wants(attrs []string) string {
	paths := make([][]string, len(attrs))
	for i, attr := range attrs {
		paths[i] = strings.Split(attr, ".")
	}
	text, _ := json.Marshal(paths) // strings cannot fail
	return string(text)
}

// instantiate runs the expression and decodes what it prints into answer.
func (r *run) instantiate(ctx context.Context, mode, wants string, answer any) error {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	args := []string{
		// Said in full, since nix.conf may have set any of them.
		"--option", "restrict-eval", "true", "-I", "src=" + r.query.Nixpkgs,
		"--option", "pure-eval", "false",
		"--option", "allow-import-from-derivation", "false",
		"--argstr", "src", r.query.Nixpkgs, "--argstr", "system", r.query.System,
		"--argstr", "mode", mode, "--argstr", "wants", wants,
	}
	if r.query.Write {
		args = append(args, "--read-write-mode")
	}
	return r.eval(ctx, packagesExpr, args, answer)
}

// Source is a nixpkgs that was fetched.
type Source struct {
	Path    string `json:"path"` // store path
	NarHash string `json:"narHash"`
	Rev     string `json:"rev"`

	LastModified int64 `json:"lastModified"` // seconds since 1970; 0: not known
}

// Fetch brings what a locked flake reference names ("github:NixOS/nixpkgs/REV")
// to the store. Nix's own cache of downloads is a folder that goes when it
// is done: the store keeps the result.
func (e Evaluator) Fetch(ctx context.Context, ref string) (src Source, err error) {
	cache, err := os.MkdirTemp("", "claudebox-fetch-")
	if err == nil {
		defer os.RemoveAll(cache)
		e.Env = append(slices.Clone(e.Env), "XDG_CACHE_HOME="+cache)
		err = e.eval(ctx, fetchExpr, []string{
			"--extra-experimental-features", "nix-command flakes", "--read-write-mode",
			"--option", "restrict-eval", "false", "--option", "pure-eval", "false", "--argstr", "ref", ref,
		}, &src)
	}
	if err != nil {
		return Source{}, &diag.Error{Op: "fetch " + ref, Err: err}
	}
	return src, nil
}
