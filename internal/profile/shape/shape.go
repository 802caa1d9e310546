package shape

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"claudebox/internal/diag"
	"claudebox/internal/diag/spelling"
)

// Kind is what sort of value a [Shape] takes.
type Kind int

const (
	Text   Kind = iota // a string; a number or a date must be quoted
	Scalar             // any scalar, taken as the text it is written as
	Flag               // true or false
	Number             // a whole number in decimal, between Min and Max
	Word               // one of Words, the first being the default
	List               // a sequence of Elem
	Record             // a mapping with the keys of Keys
	Table              // a mapping whose keys obey Rule, and whose values are Elem
)

// Shape is what a value in a document may be. Shapes form a tree that never
// changes; its depth bounds the depth of every document.
type Shape struct {
	Kind    Kind
	Doc     string   // what it means, in sentences: editors and the manual show it
	Rule    *Rule    // Text and Scalar: which text is right; Table: which keys; nil: any
	Words   []string // Word: the closed set
	Min     int      // Number: smallest
	Max     int      // Number: largest
	Default string   // Flag: "true" or "false"; Text: what stands when unsaid
	Elem    *Shape   // List, Table: each element
	Keys    []Key    // Record: the known keys, in the order that people write them
	Short   string   // Record: the key that a bare scalar stands for
	Single  bool     // List: a bare scalar stands for a list of one
	Filled  bool     // List: an empty list is a mistake
	Whole   bool     // a later document replaces it, where it else would be joined
	Former  Former   // Record, Word: keys or words that there were once
}

// Former says what to do instead of writing a key or a word that is gone.
type Former map[string]string

// Key is one known key of a [Record].
type Key struct {
	Name     string
	Required bool
	Shape    *Shape
}

// Rule says which text is right: what obeys Pattern, and what Judge finds nothing
// wrong with. Each may be left out.
type Rule struct {
	Name     string                   // what the text is, with its article: "a host name"
	Pattern  string                   // for editors, too (RE2 and ECMA 262)
	Judge    func(text string) *Fault // asked first; nil when the text is right, or Pattern shall say so
	Form     string                   // what a text that obeys Pattern consists of; shown with an error
	Remedy   string                   // what to do about a text that does not obey Pattern
	Examples []string                 // right ones, for editors and the manual
}

// Check judges a text; nil when it is right.
func (r *Rule) Check(text string) *Fault {
	if r == nil {
		return nil
	}
	if r.Judge != nil {
		if fault := r.Judge(text); fault != nil {
			return fault
		}
	}
	if Matches(r.Pattern, text) {
		return nil
	}
	message := Quote(text) + " is not " + r.Name
	if r.Form != "" {
		message += "; expected " + r.Form
	}
	return &Fault{Message: message, Remedy: r.Remedy}
}

// compiled are the patterns that were asked for, by their text.
var compiled sync.Map

// Matches reports whether a text obeys a pattern. It is compiled at its first use:
// most launches read no profile.
func Matches(pattern, text string) bool {
	known, found := compiled.Load(pattern)
	if !found {
		known, _ = compiled.LoadOrStore(pattern, regexp.MustCompile(pattern))
	}
	return known.(*regexp.Regexp).MatchString(text)
}

// Fault says what is wrong with a text, and what to write instead.
type Fault struct {
	Message string // continues "KEY: "
	Remedy  string // one imperative line; empty when none is known
}

// Document is where values were said. Name and Rank may be set after decoding:
// the document itself may say its name, and what it is merged with.
type Document struct {
	Name string // what origins show: "work"
	File string // what errors show
	Rank int    // its place in the order of merging; a later one is laid over
}

// Place is one place in a document. Line and Column count from 1; a column
// counts characters.
type Place struct {
	Doc    *Document
	Line   int
	Column int
}

// Position is the place as errors show it.
func (p Place) Position() diag.Position {
	return diag.Position{File: p.Doc.File, Line: p.Line, Column: p.Column}
}

// Value is a value that fits its shape, with the place where it was said. The
// zero Value stands for what was not said.
type Value struct {
	Place
	Shape   *Shape
	Text    string   // Text, Scalar, Flag, Number, Word
	Items   []Value  // List
	Members []Member // Record and Table, in the order of the document
	Replace bool     // tagged !replace: drops what earlier documents said
	Broken  bool     // a part of it was reported and left out
}

// Member is one key of a mapping with its value; Place is the key's.
type Member struct {
	Place
	Key   string
	Value Value
}

// Said reports whether a document said the value at all.
func (v Value) Said() bool { return v.Shape != nil }

// Get returns the value of a key, or of one in a record below ("nix.store"); the
// zero Value when there is none.
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

// Texts are the texts of a list's items.
func (v Value) Texts() []string {
	if len(v.Items) == 0 {
		return nil
	}
	texts := make([]string, len(v.Items))
	for i, item := range v.Items {
		texts[i] = item.Text
	}
	return texts
}

// names are the names of a record's keys.
func (s *Shape) names() []string {
	names := make([]string, len(s.Keys))
	for i, key := range s.Keys {
		names[i] = key.Name
	}
	return names
}

// element is the shape of a key's value; nil: the key is not known.
func (s *Shape) element(key string) *Shape {
	for _, known := range s.Keys {
		if known.Name == key {
			return known.Shape
		}
	}
	return s.Elem
}

// Key returns the shape of a record's key; asking for an unknown one is a
// fault of the program.
func (s *Shape) Key(name string) *Shape {
	if known := s.element(name); known != nil {
		return known
	}
	panic("bug: no key " + name)
}

// isScalar reports whether the kind is written as a YAML scalar.
func (k Kind) isScalar() bool { return k <= Word }

// expected says what a shape takes, as errors show it.
func (s *Shape) expected() string {
	switch s.Kind {
	case Word:
		return either(s.Words)
	case Text, Scalar:
		if s.Rule != nil {
			return s.Rule.Name
		}
	case Record:
		if s.Short != "" {
			return s.Key(s.Short).expected() + ", or a mapping"
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

// either joins words as a person would: "a, b or c".
func either(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Merge lays over on top of base, both of one shape: a later scalar wins,
// lists append, mappings join key by key; what is tagged !replace drops what
// base said. Neither value is changed.
func Merge(base, over Value) Value {
	switch {
	case !over.Said():
		return base
	case !base.Said() || over.Replace || over.Shape.Whole || over.Shape.Kind.isScalar():
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

// Nearest is the word that was probably meant by a misspelt one, or "" when
// none is near. One edit in three letters may differ, and a beginning of three
// letters or more is taken as an abbreviation.
func Nearest(text string, words []string) string {
	best, bound := "", min(len(text)/3, 3)+1
	for _, word := range words {
		if near := spelling.Distance(strings.ToLower(text), word, bound-1); near < bound {
			best, bound = word, near
		}
	}
	if best != "" || len(text) < 3 {
		return best
	}
	for _, word := range words {
		if strings.HasPrefix(word, text) {
			return word
		}
	}
	return ""
}
