package nixeval

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"claudebox/internal/diag/spelling"
	"claudebox/internal/nix/storepath"
)

// Reason is why an attribute path gives no package.
type Reason string

// The reasons. Unfree to Unsupported are nixpkgs' own refusals.
const (
	Missing     Reason = "missing"
	NotPackage  Reason = "not a package"
	Throws      Reason = "removed or renamed"
	Unfree      Reason = "unfree"
	Insecure    Reason = "insecure"
	Broken      Reason = "broken"
	Unsupported Reason = "unsupported"
	Faulty      Reason = "faulty" // its definition has no value
)

// Failure is why one attribute path gives no package.
type Failure struct {
	Reason  Reason
	Message string
	Similar []string // attribute paths that may have been meant, nearest first
	Remedy  string   // one imperative line; empty when none is known
}

// Error is the message.
func (f *Failure) Error() string { return f.Message }

// answer is what packages.nix says of one attribute path.
type answer struct {
	Error string   `json:"error"`
	Rest  []string `json:"rest"` // of the path, where it leads nowhere
	Near  []string `json:"near"`
	Type  string   `json:"type"`

	Package
	DrvPath         string   `json:"drvPath"`
	Default         string   `json:"default"`
	Flags           []string `json:"flags"`
	Vulnerabilities []string `json:"vulnerabilities"`
}

func (a answer) pkg(attr string) Package {
	p := a.Package
	p.Attr, p.Drv, p.Failure = attr, a.DrvPath, a.failure(attr)
	if len(p.Install) == 0 {
		p.Install = []string{a.Default}
	}
	return p
}

func (a answer) failure(attr string) *Failure {
	switch a.Error {
	case "":
		return a.floating(attr)
	case "missing":
		return a.missing(attr)
	case "not-a-set":
		parent := strings.TrimSuffix(attr, "."+strings.Join(a.Rest, "."))
		return &Failure{
			Reason: Missing, Message: fmt.Sprintf("%s is not in nixpkgs: %s is %s", attr, parent, article(a.Type)),
		}
	case "not-a-package":
		f := &Failure{Reason: NotPackage, Message: fmt.Sprintf("%s is %s, not a package", attr, article(a.Type))}
		if a.Type == "set" {
			f.Remedy = "name a package in it: " + attr + ".NAME"
		}
		return f
	case "refused":
		return a.refused(attr)
	}
	return &Failure{Reason: Throws}
}

// floating refuses content-addressed derivations, whose store path is known
// only after the build: nothing could be pinned.
func (a answer) floating(attr string) *Failure {
	for _, path := range slices.Sorted(maps.Values(a.Outputs)) {
		if storepath.Check(path) != nil {
			return &Failure{
				Reason:  NotPackage,
				Message: attr + " is content-addressed: its store path is not known before it is built",
			}
		}
	}
	return nil
}

func (a answer) missing(attr string) *Failure {
	set := strings.TrimSuffix(strings.TrimSuffix(attr, strings.Join(a.Rest, ".")), ".")
	f := &Failure{Reason: Missing, Message: attr + " is not in nixpkgs"}
	if set != "" {
		f.Message = fmt.Sprintf("%s is not in nixpkgs: %s has no %s", attr, set, a.Rest[0])
		set += "."
	}
	for _, name := range Nearest(a.Rest[0], a.Near) {
		f.Similar = append(f.Similar, set+name)
	}
	if f.Similar == nil {
		f.Remedy = "find its attribute path: nix --extra-experimental-features 'nix-command flakes' search nixpkgs " +
			a.Rest[len(a.Rest)-1]
	}
	return f
}

// article names a Nix type for a person.
func article(kind string) string {
	switch kind {
	case "lambda":
		return "a function"
	case "int":
		return "an integer"
	case "null":
		return "null"
	}
	return "a " + kind
}

// ownNixpkgs is the way to a package that nixpkgs refuses by default: the
// user's own system configuration may allow it, a profile may not.
const ownNixpkgs = "give the package to claudebox's module or lib.mkClaudebox, from a nixpkgs that allows it"

// refused is what nixpkgs refuses: its flags say why.
func (a answer) refused(attr string) *Failure {
	insecure := "is marked as insecure"
	if len(a.Vulnerabilities) > 0 {
		insecure += ": " + strings.Join(a.Vulnerabilities, ", ")
	}
	for _, known := range []struct {
		reason  Reason
		message string
	}{
		{Unfree, "has an unfree licence, which nixpkgs refuses by default"},
		{Insecure, insecure},
		{Broken, "is marked as broken in this nixpkgs"},
		{Unsupported, "is not available on this system"},
	} {
		if slices.Contains(a.Flags, string(known.reason)) {
			return &Failure{Reason: known.reason, Message: attr + " " + known.message, Remedy: ownNixpkgs}
		}
	}
	return &Failure{Reason: Throws}
}

// remedyFor is what to do when the evaluator does not work at all.
func remedyFor(err error) string {
	switch {
	case isEvalError(err):
		return "check that the Nix daemon runs, and that the profile's nixpkgs is one"
	case errors.Is(err, errNoProgram), errors.Is(err, fs.ErrNotExist):
		return "use the claudebox that its flake builds, which brings Nix along"
	}
	return ""
}

// maxNearest is how many names are worth a person's reading.
const maxNearest = 3

// Nearest gives up to three of names that could have been meant by name,
// nearest first: another case, a slip of one or two letters, a swap.
func Nearest(name string, names []string) []string {
	limit := min(2, len(name)/2)
	distance := func(n string) int { return spelling.Distance(strings.ToLower(name), strings.ToLower(n), limit) }
	near := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return distance(n) > limit })
	slices.SortFunc(near, func(a, b string) int {
		return cmp.Or(cmp.Compare(distance(a), distance(b)), strings.Compare(a, b))
	})
	return near[:min(len(near), maxNearest)]
}
