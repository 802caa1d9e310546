// Package hostrun knows the files of a project that tools of the host execute,
// or take orders from, and what that means to a person (attacks.md, 3.3).
//
// Git's own are not among them: they are protected, or made harmless. The
// package is a function of values and imports nothing of claudebox.
package hostrun

import (
	"slices"
	"strings"
	"sync"
)

// Rule says what a change in certain files means.
type Rule struct {
	// Pattern is a name, at any depth; "dir/name", where such a folder holds
	// such a file; or "dir/**", all below such a folder.
	Pattern string
	Means   string
}

// Rules are the files that are told of when a session changed them.
func Rules() (rules []Rule) {
	for _, line := range table {
		for _, pattern := range strings.Fields(line.held + " " + line.told) {
			rules = append(rules, Rule{pattern, line.means})
		}
	}
	return rules
}

// Held are the files and folders at a project's root that tools of the host
// execute, or take orders from, without being asked (sandbox.md, "Files the host
// executes").
func Held() []string {
	names := []string{".direnv"}
	for _, line := range table {
		for _, pattern := range strings.Fields(line.held) {
			names = append(names, strings.TrimSuffix(pattern, "/**"))
		}
	}
	return names
}

// rule is one pattern, taken apart.
type rule struct {
	above string // the folders that it names: "dir/"; empty: it is the same in any
	below bool   // it is about all below the name
	means string
}

// byName holds the rules by the last name in their patterns: there are few for
// each.
var byName = sync.OnceValue(func() map[string][]rule {
	rules := map[string][]rule{}
	for _, r := range Rules() {
		pattern, below := strings.CutSuffix(r.Pattern, "/**")
		_, name := split(pattern)
		rules[name] = append(rules[name], rule{strings.TrimSuffix(pattern, name), below, r.Means})
	}
	return rules
})

// In gives what tells the names of a folder that are in the table.
func In(folder string) func(name []byte) bool {
	if above(folder) != "" {
		return func([]byte) bool { return true }
	}
	return func(name []byte) bool { return find(folder, name, false) != "" }
}

// Means says what a change of the file at a path means; empty when the path is
// not in the table.
func Means(rel string) string {
	folder, name := split(rel)
	if means := above(folder); means != "" {
		return means
	}
	return find(folder, []byte(name), false)
}

// Ordinary reports whether a change is a day's work, given what it means: of what
// is built, installed, tested and evaluated when somebody asks for it.
func Ordinary(means string) bool {
	return slices.Contains([]string{onInst, onBuild, onTest, onNix, onTool, onCargo, onPackage, onCompose}, means)
}

// above is what is said of all in a folder, or in one above it.
func above(folder string) string {
	for folder != "." {
		outer, name := split(folder)
		if means := find(outer, []byte(name), true); means != "" {
			return means
		}
		folder = outer
	}
	return ""
}

// split gives the folder and the name of a clean path. Package path cleans it
// each time, which takes a deep tree seconds.
func split(rel string) (folder, name string) {
	if at := strings.LastIndexByte(rel, '/'); at >= 0 {
		return rel[:at], rel[at+1:]
	}
	return ".", rel
}

// find gives what is said of a name in a folder, or of all below it.
func find(folder string, name []byte, below bool) string {
	for _, r := range byName()[string(name)] {
		rest, ends := strings.CutSuffix(folder+"/", r.above)
		if r.below == below && (r.above == "" || ends && (rest == "" || rest[len(rest)-1] == '/')) {
			return r.means
		}
	}
	return ""
}
