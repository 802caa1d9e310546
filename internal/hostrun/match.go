package hostrun

import (
	"path"
	"strings"
)

// Matcher finds the rule of a path. It is made for one walk.
type Matcher struct {
	files   map[string][]rule // by their last component
	folders map[string][]rule // "dir/**" by the last component of dir
	plain   map[string]bool   // names that match wherever they stand
}

// rule is one of the table, taken apart.
type rule struct {
	*Rule
	above string // what must stand before the last component, with slashes around; empty: anything
}

// NewMatcher prepares the table.
func NewMatcher() *Matcher {
	m := &Matcher{files: make(map[string][]rule, len(Rules)), folders: map[string][]rule{}, plain: make(map[string]bool, len(Rules))}
	for i := range Rules {
		r := &Rules[i]
		pattern, below := strings.CutSuffix(r.Pattern, "/**")
		dir, base := path.Split(pattern)
		one := rule{Rule: r}
		if dir != "" {
			one.above = "/" + dir
		}
		switch {
		case below:
			m.folders[base] = append(m.folders[base], one)
		case dir == "":
			m.plain[base] = true
			fallthrough
		default:
			m.files[base] = append(m.files[base], one)
		}
	}
	return m
}

// In gives what tells the names of a folder that are in the table.
func (m *Matcher) In(folder string) func(name []byte) bool {
	if m.below(folder) != nil {
		return func([]byte) bool { return true }
	}
	return func(name []byte) bool {
		if m.plain[string(name)] {
			return true
		}
		rules := m.files[string(name)]
		return rules != nil && find(rules, folder) != nil
	}
}

// Means says what a change of the file at a path means; empty when the path is
// not in the table.
func (m *Matcher) Means(rel string) string {
	folder, name := split(rel)
	if r := m.below(folder); r != nil {
		return r.Means
	}
	if r := find(m.files[name], folder); r != nil {
		return r.Means
	}
	return ""
}

// below finds the rule for all in a folder or in one above it.
func (m *Matcher) below(folder string) *Rule {
	for folder != "." {
		above, name := split(folder)
		if rules := m.folders[name]; rules != nil {
			if r := find(rules, above); r != nil {
				return r
			}
		}
		folder = above
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

// find gives the first rule that fits what stands before the last component.
func find(rules []rule, folder string) *Rule {
	for _, r := range rules {
		if r.above == "" || strings.HasSuffix("/"+folder+"/", r.above) {
			return r.Rule
		}
	}
	return nil
}
