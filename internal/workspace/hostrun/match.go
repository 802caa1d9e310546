package hostrun

import (
	"slices"
	"strings"
)

// Matcher finds the rule of a path. It is made for one walk, and made at every
// launch: it costs one look at each rule, and no memory but its own.
//
// Rules are found by how long the name in them is: that leaves a handful to
// compare a name with.
type Matcher struct {
	first [longest + 1]uint8 // by length: the first rule, counted from 1; 0 is none
	next  [len(Rules)]uint8  // by rule: the next one of that length, counted from 1
}

// longest is the length of the longest name in the table, in bytes.
const longest = 25

const _ = uint8(len(Rules)) // a rule's number fits

// NewMatcher prepares the table.
func NewMatcher() *Matcher {
	m := &Matcher{}
	for i := len(Rules) - 1; i >= 0; i-- {
		pattern, _ := Rules[i].path()
		name := pattern[strings.LastIndexByte(pattern, '/')+1:]
		m.next[i], m.first[len(name)] = m.first[len(name)], uint8(i+1)
	}
	return m
}

// path is what a rule is about, and whether that is all below it.
func (r *Rule) path() (path string, below bool) { return strings.CutSuffix(r.Pattern, "/**") }

// In gives what tells the names of a folder that are in the table.
func (m *Matcher) In(folder string) func(name []byte) bool {
	if m.above(folder) != nil {
		return func([]byte) bool { return true }
	}
	return func(name []byte) bool { return m.find(folder, name, false) != nil }
}

// Means says what a change of the file at a path means; empty when the path is
// not in the table.
func (m *Matcher) Means(rel string) string {
	folder, name := split(rel)
	r := m.above(folder)
	if r == nil {
		r = m.find(folder, []byte(name), false)
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
func (m *Matcher) above(folder string) *Rule {
	for folder != "." {
		above, name := split(folder)
		if r := m.find(above, []byte(name), true); r != nil {
			return r
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

// find gives the first rule for a name in a folder, or for all below it.
func (m *Matcher) find(folder string, name []byte, below bool) *Rule {
	if len(name) > longest {
		return nil
	}
	for i := m.first[len(name)]; i > 0; i = m.next[i-1] {
		r := &Rules[i-1]
		pattern, all := r.path()
		above, ends := strings.CutSuffix(pattern, string(name))
		if ends && all == below && endsIn(folder, above) {
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
