package shape

import (
	"fmt"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/diag/pattern"
	"claudebox/internal/diag/spelling"
)

// Kind is what sort of value a [Shape] takes.
type Kind int

// The kinds. Those up to Word are scalars, see isScalar.
const (
	Text   Kind = iota // a string; a number or a date must be quoted
	Scalar             // any scalar, taken as the text it is written as
	Flag               // a boolean: true or false
	Number             // a whole number in decimal, between Min and Max
	Word               // an enumeration: one of Words, the first is the default
	List               // a sequence of Elem
	Record             // a mapping with the keys of Keys
	Table              // a mapping whose keys obey Rule, and whose values are Elem
)

// Shape describes which values are valid at one place of a document. Shapes form
// a tree that never changes; its depth bounds the depth of every document.
type Shape struct {
	Kind      Kind
	Doc       string   // what the value means, in sentences: editors and the manual show it
	Rule      *Rule    // Text and Scalar: which text is valid; Table: which keys are; nil: any
	Words     []string // Word: the valid values
	Min       int      // Number: smallest
	Max       int      // Number: largest
	Default   string   // the value if the key is absent. Flag: "true" or "false"; Text: any text
	Elem      *Shape   // List, Table: the shape of each element
	Keys      []Key    // Record: the known keys, in the order that people write them
	ScalarKey string   // Record: the key that a scalar in place of the mapping sets; empty: a scalar is an error
	Single    bool     // List: a scalar in place of the list is a list of one
	Filled    bool     // List: an empty list is an error
	Whole     bool     // List, Record, Table: a later document replaces the value instead of merging with it
}

// Key is one known key of a [Record].
type Key struct {
	Name     string
	Required bool
	Shape    *Shape
}

// Rule says which text is valid: it must match Pattern, and Judge must return nil.
// Each of the two may be absent.
type Rule struct {
	Name     string                   // what the text is, with its article: "a host name"
	Pattern  string                   // regular expression, valid in RE2 and ECMA 262: editors use it, too
	Judge    func(text string) *Fault // is called before Pattern is tried, and returns nil for a valid text
	Form     string                   // description of Pattern for error messages: "expected FORM"
	Remedy   string                   // what to do about a text that does not match Pattern
	Examples []string                 // valid texts, for editors and the manual
}

// Check returns what is wrong with a text, or nil if it is valid. A nil Rule accepts any text.
func (r *Rule) Check(text string) *Fault {
	if r == nil {
		return nil
	}
	if r.Judge != nil {
		if fault := r.Judge(text); fault != nil {
			return fault
		}
	}
	if pattern.Expr(r.Pattern).Matches(text) {
		return nil
	}
	message := Quote(text) + " is not " + r.Name
	if r.Form != "" {
		message += "; expected " + r.Form
	}
	return &Fault{Message: message, Remedy: r.Remedy}
}

// Fault says what is wrong with a text, and what to write instead.
type Fault struct {
	Message string // is shown after "KEY: "
	Remedy  string // one imperative line; empty when none is known
}

// Document identifies the document that values come from. Name and Rank may be set
// after decoding: they can depend on the document's own content.
type Document struct {
	Name string // the name in "work:12", which says where a value comes from
	File string // what errors show
	Rank int    // position in the order of merging; a higher rank overrides a lower one
}

// Place is a position in a document. Line and Column count from 1; Column counts
// characters, not bytes.
type Place struct {
	Doc    *Document
	Line   int
	Column int
}

// Position returns the place as errors show it.
func (p Place) Position() diag.Position {
	return diag.Position{File: p.Doc.File, Line: p.Line, Column: p.Column}
}

// Problem returns a problem at the place; format and args make its message.
func (p Place) Problem(remedy, format string, args ...any) diag.Problem {
	return diag.Problem{Position: p.Position(), Message: fmt.Sprintf(format, args...), Remedy: remedy}
}

// Value is a decoded value that is valid for its shape, with its place in the
// document. The zero Value means that the document does not set it.
type Value struct {
	Place
	Shape   *Shape
	Text    string   // Text, Scalar, Flag, Number, Word
	Items   []Value  // List
	Members []Member // Record and Table, in the order of the document
	Replace bool     // tagged !replace: in a merge it drops the value of earlier documents
	Broken  bool     // a part of it was invalid, which was reported, and is left out
}

// Member is one key of a mapping with its value; Place is the key's.
type Member struct {
	Place
	Key   string
	Value Value
}

// IsSet reports whether a document sets the value at all.
func (v Value) IsSet() bool { return v.Shape != nil }

// Get returns the value of a key; a path like "nix.store" leads into nested
// mappings. It returns the zero Value if there is none.
func (v Value) Get(path string) Value {
	key, rest, deeper := strings.Cut(path, ".")
	for _, m := range v.Members {
		if m.Key == key && deeper {
			return m.Value.Get(rest)
		} else if m.Key == key {
			return m.Value
		}
	}
	return Value{}
}

// Texts returns the texts of a list's items.
func (v Value) Texts() []string {
	var texts []string
	for _, item := range v.Items {
		texts = append(texts, item.Text)
	}
	return texts
}

// names returns the names of a record's keys.
func (s *Shape) names() []string {
	names := make([]string, len(s.Keys))
	for i, key := range s.Keys {
		names[i] = key.Name
	}
	return names
}

// valueShape returns the shape of a key's value: for a Table always Elem, for a Record nil if the key is unknown.
func (s *Shape) valueShape(key string) *Shape {
	for _, known := range s.Keys {
		if known.Name == key {
			return known.Shape
		}
	}
	return s.Elem
}

// Key returns the shape of a record's key. It panics if the key is unknown.
func (s *Shape) Key(name string) *Shape {
	if known := s.valueShape(name); known != nil {
		return known
	}
	panic("bug: no key " + name)
}

// isScalar reports whether the kind is written as a YAML scalar.
func (k Kind) isScalar() bool { return k <= Word }

// expected describes the values that a shape accepts, for "expected …" in errors.
func (s *Shape) expected() string {
	switch s.Kind {
	case Word:
		return either(s.Words)
	case Text, Scalar:
		if s.Rule != nil {
			return s.Rule.Name
		}
	case Record:
		if s.ScalarKey != "" {
			return s.Key(s.ScalarKey).expected() + ", or a mapping"
		}
	case List:
		if s.Single {
			return s.Elem.expected() + ", or a list"
		}
	}
	return kindNames[s.Kind]
}

var kindNames = [...]string{
	Text:   "text",
	Scalar: "text",
	Flag:   "true or false",
	Number: "a whole number",
	Word:   "a word",
	List:   "a list",
	Record: "a mapping",
	Table:  "a mapping",
}

// either joins words for a sentence: "a, b or c".
func either(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Merge returns base overridden by over; both must have the same shape. A scalar
// of over wins, lists are appended, mappings are merged key by key. A value of over
// that is tagged !replace, or whose shape is Whole, replaces base. Neither argument
// is changed.
func Merge(base, over Value) Value {
	switch {
	case !over.IsSet():
		return base
	case !base.IsSet() || over.Replace || over.Shape.Whole || over.Shape.Kind.isScalar():
		return over
	}
	joined := over
	joined.Broken = base.Broken || over.Broken
	if over.Shape.Kind == List {
		joined.Items = append(base.Items[:len(base.Items):len(base.Items)], over.Items...)
		return joined
	}
	at := make(map[string]int, len(base.Members))
	joined.Members = slices.Clone(base.Members)
	for i, m := range joined.Members {
		at[m.Key] = i
	}
	for _, m := range over.Members {
		if i, said := at[m.Key]; said {
			m.Value = Merge(joined.Members[i].Value, m.Value)
			joined.Members[i] = m
		} else {
			joined.Members = append(joined.Members, m)
		}
	}
	return joined
}

// Nearest returns the word that a misspelt text probably means, or "" if none is
// similar. It allows one edit for every three letters, three at most; otherwise a
// prefix of at least three letters counts as an abbreviation.
func Nearest(text string, words []string) string {
	best, bound := "", min(len(text)/3, 3)+1
	for _, word := range words {
		if near := spelling.Distance(strings.ToLower(text), word, bound-1); near < bound {
			best, bound = word, near
		}
	}
	longer := slices.IndexFunc(words, func(word string) bool { return strings.HasPrefix(word, text) })
	if best == "" && len(text) >= 3 && longer >= 0 {
		best = words[longer]
	}
	return best
}
