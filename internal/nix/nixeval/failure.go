package nixeval

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"claudebox/internal/diag/spelling"
	"claudebox/internal/nix/storepath"
)

// Failure is why one attribute path gives no package.
type Failure struct {
	Message string // empty in an [answer]: nixpkgs itself explains it, see [run.reasonThrown]
	Remedy  string // one imperative line; empty when none is known
}

// answer is what packages.nix prints for one attribute path. [answer.pkg] makes a [Package] of it.
type answer struct {
	Error string   `json:"error"` // which kind of failure; empty: there is a package
	Rest  []string `json:"rest"`  // the end of the path, from the first attribute that does not exist
	Near  []string `json:"near"`  // attributes that have about as long a name as the missing one
	Type  string   `json:"type"`  // Nix's type of what is there instead of a set or package

	Package
	DrvPath         string   `json:"drvPath"`
	Default         string   `json:"default"` // the default output
	Flags           []string `json:"flags"`   // of unfree, insecure, broken and unsupported, those that hold
	Vulnerabilities []string `json:"vulnerabilities"`
}

// pkg returns the package that the answer gives for attr.
func (a answer) pkg(attr string) Package {
	p := a.Package
	p.Attr, p.Drv, p.Failure = attr, a.DrvPath, a.failure(attr)
	if len(p.Install) == 0 {
		p.Install = []string{a.Default}
	}
	return p
}

// failure returns why the answer gives no package for attr; nil if it gives one.
func (a answer) failure(attr string) *Failure {
	switch a.Error {
	case "":
		return a.contentAddressed(attr)
	case "missing":
		return a.missing(attr)
	case "not-a-set":
		parent := strings.TrimSuffix(attr, "."+strings.Join(a.Rest, "."))
		return &Failure{Message: fmt.Sprintf("%s is not in nixpkgs: %s is %s", attr, parent, article(a.Type))}
	case "not-a-package":
		f := &Failure{Message: fmt.Sprintf("%s is %s, not a package", attr, article(a.Type))}
		if a.Type == "set" {
			f.Remedy = "name a package in it: " + attr + ".NAME"
		}
		return f
	case "refused":
		return a.refused(attr)
	}
	return &Failure{}
}

// contentAddressed returns a Failure for a content-addressed derivation: its store path is
// known only after the build, so it cannot be pinned.
func (a answer) contentAddressed(attr string) *Failure {
	for _, path := range a.Outputs {
		if storepath.Check(path) != nil {
			return &Failure{Message: attr + " is content-addressed: its store path is not known before it is built"}
		}
	}
	return nil
}

// missing returns the Failure for a path with a name that does not exist, and names that may have been meant.
func (a answer) missing(attr string) *Failure {
	set := strings.TrimSuffix(strings.TrimSuffix(attr, strings.Join(a.Rest, ".")), ".")
	f := &Failure{Message: attr + " is not in nixpkgs"}
	if set != "" {
		f.Message = fmt.Sprintf("%s is not in nixpkgs: %s has no %s", attr, set, a.Rest[0])
		set += "."
	}
	if near := Nearest(a.Rest[0], a.Near); len(near) > 0 {
		f.Message += "; did you mean " + set + strings.Join(near, " or "+set) + "?"
	} else {
		f.Remedy = "find its attribute path: nix --extra-experimental-features 'nix-command flakes' search nixpkgs " +
			a.Rest[len(a.Rest)-1]
	}
	return f
}

// article writes a Nix type with its article, for a message: "a function".
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

// ownNixpkgs is the remedy for a package that nixpkgs refuses by default: the
// user's own system configuration may allow it, a profile may not.
const ownNixpkgs = "give the package to claudebox's module or lib.mkClaudebox, from a nixpkgs that allows it"

// refused returns why nixpkgs refuses a package, from the flags of the answer. If no flag tells, the message is empty.
func (a answer) refused(attr string) *Failure {
	insecure := "is marked as insecure"
	if len(a.Vulnerabilities) > 0 {
		insecure += ": " + strings.Join(a.Vulnerabilities, ", ")
	}
	for _, known := range []struct{ flag, message string }{
		{"unfree", "has an unfree licence, which nixpkgs refuses by default"},
		{"insecure", insecure},
		{"broken", "is marked as broken in this nixpkgs"},
		{"unsupported", "is not available on this system"},
	} {
		if slices.Contains(a.Flags, known.flag) {
			return &Failure{Message: attr + " " + known.message, Remedy: ownNixpkgs}
		}
	}
	return &Failure{}
}

// remedyFor is the remedy when the evaluator itself does not work; empty when none is known.
func remedyFor(err error) string {
	switch {
	case isEvalError(err):
		return "check that the Nix daemon runs, and that the profile's nixpkgs is one"
	case errors.Is(err, errNoProgram), errors.Is(err, fs.ErrNotExist):
		return "install claudebox again"
	}
	return ""
}

// maxNearest is how many names are suggested to a person.
const maxNearest = 3

// Nearest returns up to three of names that the user may have meant by name,
// nearest first: they differ in case, or for each three letters by one, two at most, a swap being one.
func Nearest(name string, names []string) []string {
	limit := spelling.Edits(name)
	distance := func(n string) int { return spelling.Distance(strings.ToLower(name), strings.ToLower(n), limit) }
	near := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return distance(n) > limit })
	slices.SortFunc(near, func(a, b string) int {
		return cmp.Or(cmp.Compare(distance(a), distance(b)), strings.Compare(a, b))
	})
	return near[:min(len(near), maxNearest)]
}
