package hostrun

import (
	"slices"
	"strings"
	"sync"
)

// byName holds the rules by the last name in their patterns: there are few for
// each.
var byName = sync.OnceValue(func() map[string][]*Rule {
	rules := make(map[string][]*Rule, len(Rules))
	for i := range Rules {
		pattern, _ := Rules[i].path()
		_, name := split(pattern)
		rules[name] = append(rules[name], &Rules[i])
	}
	return rules
})

// path is what a rule is about, and whether that is all below it.
func (r *Rule) path() (path string, below bool) { return strings.CutSuffix(r.Pattern, "/**") }

// In gives what tells the names of a folder that are in the table.
func In(folder string) func(name []byte) bool {
	if above(folder) != nil {
		return func([]byte) bool { return true }
	}
	return func(name []byte) bool { return find(folder, name, false) != nil }
}

// Means says what a change of the file at a path means; empty when the path is
// not in the table.
func Means(rel string) string {
	folder, name := split(rel)
	r := above(folder)
	if r == nil {
		r = find(folder, []byte(name), false)
	}
	if r == nil {
		return ""
	}
	return r.Means
}

// Ordinary reports whether a change is a day's work, given what it means: of what
// is built, installed, tested and evaluated when somebody asks for it.
func Ordinary(means string) bool {
	return slices.Contains([]string{onInst, onBuild, onTest, onNix, onTool, onCargo, onPackage, onCompose}, means)
}

// above finds the rule for all in a folder or in one above it.
func above(folder string) *Rule {
	for folder != "." {
		outer, name := split(folder)
		if r := find(outer, []byte(name), true); r != nil {
			return r
		}
		folder = outer
	}
	return nil
}

// split gives the folder and the name of a clean path. Package path cleans it
// each time, which takes a deep tree seconds.
func split(rel string) (folder, name string) {
	if at := strings.LastIndexByte(rel, '/'); at >= 0 {
		return rel[:at], rel[at+1:]
	}
	return ".", rel
}

// find gives the first rule for a name in a folder, or for all below it.
func find(folder string, name []byte, below bool) *Rule {
	for _, r := range byName()[string(name)] {
		pattern, all := r.path()
		if all == below && endsIn(folder, strings.TrimSuffix(pattern, string(name))) {
			return r
		}
	}
	return nil
}

// endsIn reports whether the last components of a folder are those of above,
// which ends with a slash, or is empty.
func endsIn(folder, above string) bool {
	rest, ends := strings.CutSuffix(folder, strings.TrimSuffix(above, "/"))
	return above == "" || ends && (rest == "" || rest[len(rest)-1] == '/')
}
