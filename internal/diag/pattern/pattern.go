// Package pattern compiles regular expressions when they are first used: most launches use few of those that claudebox
// has, and a page of memory for each is a hundredth of a millisecond.
package pattern

import (
	"regexp"
	"sync"
)

// Expr is a regular expression. As a constant it costs nothing until it is used.
type Expr string

// compiled holds what was compiled, by its text.
var compiled sync.Map

// Compiled returns the compiled expression. It panics if the expression is invalid.
func (e Expr) Compiled() *regexp.Regexp {
	known, found := compiled.Load(e)
	if !found {
		known, _ = compiled.LoadOrStore(e, regexp.MustCompile(string(e)))
	}
	return known.(*regexp.Regexp)
}

// Matches reports whether a text has a match.
func (e Expr) Matches(text string) bool { return e.Compiled().MatchString(text) }
