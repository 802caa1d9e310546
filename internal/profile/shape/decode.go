package shape

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"claudebox/internal/diag"
)

// maxAliased bounds the number of values that aliases may add to a document, so that
// a small file cannot expand to a huge one. Most files have no aliases.
const maxAliased = 10_000

// Decode decodes the YAML document src by the shape root; what is its name in
// messages ("profile"). It returns every problem, and a value without the invalid
// parts; without problems the value is complete. A problem of an anchor is
// reported once more for each alias of it.
func Decode(doc *Document, src []byte, root *Shape, what string) (Value, diag.Problems) {
	node, problems := parse(doc, src)
	if problems != nil {
		return Value{}, problems
	}
	d := decoder{doc: doc}
	return d.value(root, node, what), d.problems
}

// decoder walks a document and collects its problems.
type decoder struct {
	doc      *Document
	problems diag.Problems
	inAlias  int // how many aliases the current node is nested in
	aliased  int // values seen inside aliases
}

// addf adds a problem at n. Decoding goes on, so that one run reports all problems.
func (d *decoder) addf(n *yaml.Node, remedy, format string, args ...any) {
	d.problems = append(d.problems, d.place(n).Problem(remedy, format, args...))
}

func (d *decoder) place(n *yaml.Node) Place {
	return Place{Doc: d.doc, Line: n.Line, Column: n.Column}
}

// value decodes n by s; what is its name in messages. It returns the zero Value if
// nothing of n is valid.
func (d *decoder) value(s *Shape, n *yaml.Node, what string) Value {
	if n.Kind == yaml.AliasNode {
		return d.alias(s, n, what)
	}
	if d.inAlias > 0 {
		d.aliased++
	}
	if !d.rightTag(s, n, what) {
		return Value{}
	}
	switch s.Kind {
	case List:
		return d.list(s, n, what)
	case Record, Table:
		return d.mapping(s, n, what)
	}
	return d.scalar(s, n, what)
}

// alias decodes the node that an alias refers to. An anchor that contains itself
// cannot recurse for ever, as shapes have a fixed depth.
func (d *decoder) alias(s *Shape, n *yaml.Node, what string) Value {
	if d.aliased > maxAliased {
		return Value{} // reported at the end of the outermost alias
	}
	d.inAlias++
	v := d.value(s, n.Alias, what)
	d.inAlias--
	if d.inAlias == 0 && d.aliased > maxAliased {
		d.addf(n, "write the values out, or use extends", "aliases stand for more than %d values", maxAliased)
	}
	return v
}

// replaceTag marks a list or mapping that replaces that of earlier documents instead of merging with it.
const replaceTag = "!replace"

// plainTags are the standard tags that are allowed: they change nothing, or make a scalar text.
var plainTags = map[yaml.Kind]string{yaml.ScalarNode: "!!str", yaml.MappingNode: "!!map", yaml.SequenceNode: "!!seq"}

// rightTag reports whether the tag of n is allowed, and notes a problem if not. Tags
// without a meaning here are refused: !!null on a text would make it null.
func (d *decoder) rightTag(s *Shape, n *yaml.Node, what string) bool {
	switch {
	case !isTagged(n) || n.ShortTag() == plainTags[n.Kind]:
		return true
	case n.ShortTag() != replaceTag:
		d.addf(n, "remove the tag", "%s: unknown tag %s", what, Quote(n.ShortTag()))
		return false
	case n.Kind == yaml.ScalarNode || s.Kind.isScalar() || s.Whole:
		d.addf(n, "remove the tag; a later value replaces an earlier one anyway",
			"%s: !replace is for lists and mappings that would be joined", what)
		return false
	}
	return true
}

// isTagged reports whether a node has an explicit tag in the document.
func isTagged(n *yaml.Node) bool { return n.Style&yaml.TaggedStyle != 0 }

func (d *decoder) list(s *Shape, n *yaml.Node, what string) Value {
	v := Value{Place: d.place(n), Shape: s, Replace: n.ShortTag() == replaceTag}
	switch {
	case n.Kind == yaml.SequenceNode:
		v.Items = make([]Value, 0, len(n.Content))
		for _, child := range n.Content {
			v.add(d.value(s.Elem, child, what))
		}
	case s.Single && n.Kind == yaml.ScalarNode && !isNull(n):
		v.add(d.value(s.Elem, n, what))
	case !isNull(n):
		return d.mismatch(s, n, what)
	}
	if s.Filled && len(v.Items) == 0 && !v.Broken {
		d.addf(n, "", "%s: the list is empty; expected at least one entry", what)
		return Value{}
	}
	return v
}

// add appends an item unless it is the zero Value. It marks the list as Broken if
// the item is invalid as a whole or in part.
func (v *Value) add(item Value) {
	v.Broken = v.Broken || !item.IsSet() || item.Broken
	if item.IsSet() {
		v.Items = append(v.Items, item)
	}
}

func (d *decoder) mapping(s *Shape, n *yaml.Node, what string) Value {
	v := Value{Place: d.place(n), Shape: s, Replace: n.ShortTag() == replaceTag}
	switch {
	case s.ScalarKey != "" && n.Kind == yaml.ScalarNode && !isNull(n):
		value := d.value(s.Key(s.ScalarKey), n, what)
		if !value.IsSet() {
			return Value{}
		}
		v.put(Member{v.Place, s.ScalarKey, value})
		return v
	case isNull(n) && s.ScalarKey == "" && !slices.ContainsFunc(s.Keys, func(key Key) bool { return key.Required }):
		return v
	case n.Kind != yaml.MappingNode:
		return d.mismatch(s, n, what)
	}
	seen := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, ok := d.key(n.Content[i], what)
		if !ok {
			v.Broken = true
			continue
		}
		switch elem, first := s.valueShape(key.Value), seen[key.Value]; {
		case elem == nil:
			d.unknownKey(s, key, what)
			v.Broken = true
		case first != nil:
			d.addf(key, "keep one of them", "duplicate key %s in %s, first said in line %d", Quote(key.Value), what,
				first.Line)
		default:
			seen[key.Value] = key
			fits := d.obeys(s.Rule, key, what)
			value := d.value(elem, n.Content[i+1], key.Value)
			if !fits {
				value = Value{}
			}
			v.put(Member{d.place(key), key.Value, value})
		}
	}
	for _, known := range s.Keys {
		if known.Required && seen[known.Name] == nil {
			d.addf(n, "", "%s: key %q is missing", what, known.Name)
			v.Broken = true
		}
	}
	return v
}

// put appends a member unless its value is the zero Value. It marks the mapping as
// Broken if the value is invalid as a whole or in part.
func (v *Value) put(m Member) {
	v.Broken = v.Broken || !m.Value.IsSet() || m.Value.Broken
	if m.Value.IsSet() {
		v.Members = append(v.Members, m)
	}
}

// key returns the scalar node of a mapping's key, following an alias; false if the key is invalid, which it notes.
func (d *decoder) key(n *yaml.Node, what string) (*yaml.Node, bool) {
	if n.Kind == yaml.AliasNode && n.Alias.Kind == yaml.ScalarNode {
		n = n.Alias
	}
	switch {
	case n.Kind != yaml.ScalarNode:
		d.addf(n, "", "%s: a key must be text, found %s", what, found(n))
		return nil, false
	case isTagged(n) && n.ShortTag() != plainTags[yaml.ScalarNode]:
		d.addf(n, "remove the tag", "%s: a key cannot have the tag %s", what, Quote(n.ShortTag()))
		return nil, false
	case n.ShortTag() == "!!merge":
		d.addf(n, "write the keys out, or use extends", "%s: merge keys (<<) are not supported", what)
		return nil, false
	}
	return n, true
}

func (d *decoder) unknownKey(s *Shape, key *yaml.Node, what string) {
	if near := Nearest(key.Value, s.names()); near != "" {
		d.addf(key, "", "unknown key %s in %s; did you mean %q?", Quote(key.Value), what, near)
		return
	}
	d.addf(key, "", "unknown key %s in %s; expected %s", Quote(key.Value), what, strings.Join(s.names(), ", "))
}
