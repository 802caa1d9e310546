package grant

import (
	"slices"
	"strconv"
	"strings"
)

// rule says which change of a key's grants lets in more.
type rule struct {
	comes, goes, other Verdict    // a grant more; one less; another one, or another Of
	chains             [][]string // levels, the one that lets in least first; less is what is less in each
	rights             bool       // a level is words, of which each of [rightWords] lets in more
	limit              bool       // a level is a number, the less the narrower; 0: none
}

// The rules of lists.
var (
	fixed    = rule{} // it is not known what another one does, nor one less
	adds     = rule{More, Less, More, nil, false, false}
	protects = rule{Less, More, Unsure, nil, false, false}
	used     = rule{More, Unsure, Unsure, nil, false, false} // a secret; it is kept out of all variables
	limits   = rule{limit: true}
	harmless = rule{Less, Less, Less, nil, false, false}
)

func words(chains ...string) (r rule) {
	for _, chain := range chains {
		r.chains = append(r.chains, strings.Fields(chain))
	}
	return r
}

// rightWords are the rights to a mount or a variable: that the host's is seen, may be written, holds a secret.
var rightWords = []string{"ro", "rw", "host", "secret"}

// Keys of grants that no profile has.
const (
	Variable = "variable" // Level: "host" if its value is the host's, "secret"
	Mount    = "mount"    // as it is bound; Level: "ro", "rw"; empty: what it covers is hidden
)

// rules are those of all keys: of a profile's (see [settings]), and of what a plan or a launch has besides. What is not
// here is fixed.
var rules = func() map[string]rule {
	all := map[string]rule{
		Variable: {goes: Less, rights: true},
		Mount:    {rights: true},

		// The parts of the dev shell, which is the project's own.
		"devshell.flake": {goes: Less, other: Less}, "devshell.file": {goes: Less, other: Less},
		"devshell.noHook": harmless, "devshell.watch": harmless,
		"devshell.require": harmless, "devshell.wait": harmless,
	}
	for _, s := range settings {
		all[s.key] = s.rule
	}
	return all
}()

// leveled reports whether the rule judges levels.
func (r rule) leveled() bool { return r.rights || r.limit || len(r.chains) > 0 }

// level judges a change from one level to another; empty: there was, or is, none.
func (r rule) level(was, is string) (v Verdict) {
	number := func(text string) int64 {
		n, _ := strconv.ParseInt(text, 10, 64)
		return n
	}
	switch {
	case was == is, r.limit && number(is) != 0 && (number(was) == 0 || number(is) < number(was)):
		return Less
	case r.limit:
		return More
	case r.rights:
		had := strings.Fields(was)
		for right := range strings.FieldsSeq(is) {
			if slices.Contains(rightWords, right) && !slices.Contains(had, right) &&
				(right != "ro" || !slices.Contains(had, "rw")) {
				return More
			}
		}
		return Less
	}
	for _, chain := range r.chains {
		had, has := slices.Index(chain, was), slices.Index(chain, is)
		switch {
		case had < 0 && was != "", has < 0 && is != "":
			return Unsure // a word that nobody knows
		case has > had:
			v = More
		case v == Unsure:
			v = Less
		}
	}
	return v
}
