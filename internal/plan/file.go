package plan

import (
	"bytes"
	"cmp"
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
	"claudebox/internal/plan/resolve"
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
	var plain bytes.Buffer
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("bug: a plan holds only plain values: " + err.Error())
	}
	b := bytes.NewBuffer(make([]byte, 0, 2*plain.Len())) // the encoder itself would grow it step by step
	if err := json.Indent(b, plain.Bytes(), "", "  "); err != nil {
		panic("bug: indent a plan: " + err.Error())
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
	err := checkClaims(f.Plan)
	if text := unseen(f.Plan); text != "" && err == nil {
		err = fmt.Errorf("%q has characters that a terminal obeys, or that nobody sees", text)
	}
	if err != nil {
		return Plan{}, &diag.Error{Op: op, Err: err, Remedy: anew}
	}
	return f.Plan, nil
}

// unseen returns a text of a plan that a terminal does not show as it is; empty if there is none. Values of
// variables and words of the agent may have such characters: they are made visible where they are shown.
func unseen(p Plan) string {
	var find func(v any) string
	find = func(v any) string {
		switch v := v.(type) {
		case string:
			if diag.Visible(v) != v {
				return v
			}
		case []any:
			for _, one := range v {
				if text := find(one); text != "" {
					return text
				}
			}
		case map[string]any:
			for key, one := range v {
				if text := find(one); text != "" && key != "value" && key != "command" {
					return text
				}
			}
		}
		return ""
	}
	var whole any
	text, _ := json.Marshal(p) // what was decoded: a file can say a thing twice
	_ = json.Unmarshal(text, &whole)
	return find(whole)
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

// Tools returns the paths of the pinned tools by their names.
func (p Plan) Tools() map[string]string {
	tools := map[string]string{}
	for _, t := range p.Pins.Tools {
		tools[t.Name] = t.Path
	}
	return tools
}

// ToolPath returns the path of a pinned tool, or "" if the plan has no such tool. A plan file can name any file of the
// store: nothing on the host may run it or read it for the user.
func ToolPath(p Plan, name string) string { return p.Tools()[name] }

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

// checkClaims returns an error if a plan file claims something untrue, or what no profile can ask for: anybody can
// write one with a correct digest. What is said to belong to the base is not shown in the audit and not judged later,
// so it must be what [Build] makes. Everything else must come from a line of a profile. A list of hosts or a proxy
// would look in the audit like a restriction, so it must be for the plan's tier.
func checkClaims(p Plan) error {
	if fault := profile.NameFault(p.Profile); fault != "" {
		return fmt.Errorf("no profile is called %q: %s", p.Profile, fault)
	}
	prof, res := baseOf(p)
	variables, based := environment(prof, res), mounts(prof, res)
	for _, e := range p.Env {
		asked := isRule(e.Why) && (e.From == FromConst || e.From == FromHost)
		if !asked && !slices.Contains(variables, e) {
			return fmt.Errorf("the variable %s (%s) is none of the base, and no profile asks for it so", e.Name, e.Why)
		}
	}
	for _, m := range p.Mounts {
		if !slices.Contains(based, m) && !isKept(m, p.Agent.Home) && !isOfProfile(m) {
			return fmt.Errorf("the mount of %s at %s (%s) is none of the base, and no profile asks for it so",
				m.Source, m.Destination, m.Why)
		}
	}
	sorted := slices.Clone(p.Mounts)
	SortMounts(sorted)
	if err := checkMounts(sorted); err != nil || !slices.Equal(sorted, p.Mounts) {
		return cmp.Or(err, errors.New("its mounts are not in order"))
	}
	for _, pattern := range p.Worktrees {
		if fault := profile.WorktreeFault(pattern); fault != "" {
			return fmt.Errorf("worktrees: %s", fault)
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
	if !slices.Equal(p.Path, searchPath(p.Pins.Packages)) {
		return errors.New("its PATH is not that of its packages")
	}
	if n := p.Network; !reflect.DeepEqual(n, n.Under(n.Tier)) {
		return fmt.Errorf("its network has hosts, a proxy or exceptions that tier %s does not use", n.Tier)
	}
	return nil
}

// baseOf returns a profile and a resolution for which [Build] makes the base of a plan.
func baseOf(p Plan) (profile.Profile, resolve.Resolution) {
	prof := profile.Profile{Nix: p.Nix, Cache: p.Cache, Compat: p.Compat}
	prof.Agent.Name = p.Agent.Name
	return prof, resolve.Resolution{
		System: p.System, Packages: p.Pins.Packages, Nixpkgs: p.Pins.Nixpkgs, Tools: p.Tools(),
	}
}

// isRule reports whether a reason names a line of a profile, as [profile.Origin.Rule] writes it.
func isRule(why string) bool {
	return strings.HasPrefix(why, "profile ") || profile.IsProjectRule(why)
}

// isKept reports whether a mount is that of a folder of the agent's home that is kept.
func isKept(m Mount, kept []string) bool {
	return slices.ContainsFunc(kept, func(folder string) bool {
		return fs.ValidPath(folder) && folder != "." && folder[0] == '.' && m == keptMount(folder)
	})
}

// isOfProfile reports whether a line of a profile can ask for a mount.
func isOfProfile(m Mount) bool {
	written := strings.NewReplacer("${home}", "~", "${project}", ".")
	asked := profile.Mount{
		Host: written.Replace(m.Source), Sandbox: written.Replace(m.Destination),
		Writable: m.Kind == Bind, Optional: m.Optional, Secret: m.Secret,
	}
	made := profileMount(asked)
	made.Why = m.Why
	return isRule(m.Why) && made == m && profile.MountFault(asked) == ""
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
