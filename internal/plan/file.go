package plan

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/nix/storepath"
	"claudebox/internal/profile"
)

// file is the form of a plan in a file, with its digest. Plans in memory have no digest.
type file struct {
	Digest string `json:"digest"` // sha256 in hex over the file without this line
	Plan
}

// Encode returns the plan as it is stored in a file: indented JSON with its digest
// and a final newline. Equal plans give equal bytes.
func (p Plan) Encode() []byte { return encode(file{Digest: p.Digest(), Plan: p}) }

// Digest returns the SHA-256, in hex, of the plan's file form without the digest.
func (p Plan) Digest() string { return fmt.Sprintf("%x", sha256.Sum256(encode(p))) }

func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		panic("bug: a plan holds only plain values: " + err.Error())
	}
	return b.Bytes()
}

const anew = "make it anew with `claudebox plan --pinned`"

// Decode decodes a plan file strictly. It refuses unknown keys, a [Version] other
// than this build's, a wrong digest, and what [checkClaims] refuses. Errors begin
// with name, the name of the file.
func Decode(name string, src []byte) (Plan, error) {
	op := "read plan " + name
	var f file
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return Plan{}, notAPlan(op, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Plan{}, notAPlan(op, errors.New("more follows after the plan"))
	}
	if f.Version != Version {
		return Plan{}, diag.Errorf(op, anew, "version %d; this claudebox reads version %d", f.Version, Version)
	}
	if f.Digest != f.Plan.Digest() {
		return Plan{}, diag.Errorf(op, anew+"; a plan is not edited by hand",
			"its content does not fit its digest")
	}
	if err := checkClaims(f.Plan); err != nil {
		return Plan{}, &diag.Error{Op: op, Err: err, Remedy: anew}
	}
	return f.Plan, nil
}

func notAPlan(op string, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		err = errors.New(kind.Field + " is a " + kind.Value + ", which it cannot be")
	case errors.As(err, &syntax), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		err = errors.New("not JSON, or cut short")
	}
	return &diag.Error{Op: op, Err: err, Remedy: anew}
}

// ToolPath returns the path of a pinned tool, or "" if the plan has no such tool.
func ToolPath(p Plan, name string) string {
	for _, t := range p.Pins.Tools {
		if t.Name == name {
			return t.Path
		}
	}
	return ""
}

// StorePaths returns the files and folders of the store that a launch of this
// plan needs: every output and tool, sorted. Those of tools may lie below a store path.
func (p Plan) StorePaths() []string {
	var paths []string
	for _, pkg := range p.Pins.Packages {
		for _, output := range pkg.Outputs {
			paths = append(paths, output.Path)
		}
	}
	for _, tool := range p.Pins.Tools {
		paths = append(paths, tool.Path)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Roots returns the store paths of [Plan.StorePaths], of nixpkgs, and those in the
// values of constants and in the sources of required mounts, sorted. Their closure
// is what a launch needs of the store.
func (p Plan) Roots() []string {
	var paths []string
	for _, v := range p.Env {
		if v.From == FromConst {
			paths = append(paths, storepath.In(v.Value)...)
		}
	}
	for _, m := range p.Mounts {
		if !m.Optional {
			paths = append(paths, storepath.In(m.Source)...)
		}
	}
	for _, name := range append(p.StorePaths(), p.Pins.Nixpkgs.Path) {
		if path, err := storepath.Of(name); err == nil {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Packages returns the profile's packages (own) and those that every sandbox has
// (base), each in the order of PATH.
func (p Plan) Packages() (own, base []Package) {
	for _, pkg := range p.Pins.Packages {
		if pkg.Why == Base {
			base = append(base, pkg)
		} else {
			own = append(own, pkg)
		}
	}
	return own, base
}

// checkClaims returns an error if a plan file claims something untrue: anybody can
// write one with a correct digest. Mounts with Why "base" are not shown in the audit
// and not checked later, so they must really belong to the base. Tools run on the
// host, so they must come from the store. The closure must consist of store paths. A
// list of hosts or a proxy would look in the audit like a restriction, so it must be
// for the plan's tier.
func checkClaims(p Plan) error {
	for _, m := range p.Mounts {
		if m.Why == Base && !isBase(m, p.Agent.Home) {
			return fmt.Errorf("the mount of %s at %s is none of the base", m.Source, m.Destination)
		}
	}
	for _, path := range p.Pins.Closure {
		if !isInStore(path) || strings.Contains(path[len(storepath.Dir)+1:], "/") {
			return fmt.Errorf("%q in its closure is no store path", path)
		}
	}
	for _, t := range p.Pins.Tools {
		if !isInStore(t.Path) {
			return fmt.Errorf("the tool %s at %s is not in the store", t.Name, t.Path)
		}
	}
	if n := p.Network; !reflect.DeepEqual(n, n.Under(n.Tier)) {
		return fmt.Errorf("its network has hosts, a proxy or exceptions that tier %s does not use", n.Tier)
	}
	return nil
}

// isBase reports whether a mount shows no more of the host than the mounts of the
// base do. kept are the folders of the agent's home that are kept.
func isBase(m Mount, kept []string) bool {
	if m.Kind != Bind && m.Kind != ROBind {
		return true
	}
	if m.Kind == ROBind && (m.Source == storepath.Dir || isInStore(m.Source)) {
		return true
	}
	of := func(known Mount) bool { return known.Kind == m.Kind && known.Source == m.Source }
	return slices.ContainsFunc(baseMounts, of) || slices.ContainsFunc(cacheMounts(profile.CacheProject), of) ||
		slices.ContainsFunc(kept, func(folder string) bool {
			return fs.ValidPath(folder) && folder != "." && folder[0] == '.' && m == keptMount(folder)
		})
}

func isInStore(name string) bool {
	return strings.HasPrefix(name, storepath.Dir+"/") && path.Clean(name) == name
}

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of plan files. It is generated from
// the types of this package and their comments by `go test ./internal/plan
// -update`. It cannot check the digest.
func Schema() []byte { return schema }
