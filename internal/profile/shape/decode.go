package shape

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"claudebox/internal/diag"
)

// maxAliased bounds the values that aliases may add to a document, so that a
// small file cannot stand for a large one. A usual file has none.
const maxAliased = 10_000

// Decode reads a document, which is YAML, by its shape; what names it in messages
// ("profile"). It returns what fits, and every problem in the order of the file;
// with no problems the value is whole.
func Decode(doc *Document, src []byte, root *Shape, what string) (Value, diag.Problems) {
	node, fault := parse(doc, src)
	if fault != nil {
		return Value{}, diag.Problems{*fault}
	}
	d := decoder{doc: doc}
	v, _ := d.value(root, node, what)
	slices.SortStableFunc(d.problems, func(a, b diag.Problem) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
	return v, slices.Compact(d.problems) // an alias repeats what is wrong with its anchor
}

// decoder walks a document and notes what is wrong with it.
type decoder struct {
	doc      *Document
	problems diag.Problems
	inAlias  int // aliases that we are inside of
	aliased  int // values seen inside aliases
}

// addf notes a problem at n and goes on, so that one run reports them all.
func (d *decoder) addf(n *yaml.Node, remedy, format string, args ...any) {
	d.problems = append(d.problems, diag.Problem{
		Position: d.place(n).Position(),
		Message:  fmt.Sprintf(format, args...),
		Remedy:   remedy,
	})
}

func (d *decoder) place(n *yaml.Node) Place {
	return Place{Doc: d.doc, Line: n.Line, Column: n.Column}
}

// value reads n as s says; what names it in messages. It is false when
// nothing of n can be used.
func (d *decoder) value(s *Shape, n *yaml.Node, what string) (Value, bool) {
	if n.Kind == yaml.AliasNode {
		return d.alias(s, n, what)
	}
	if d.inAlias > 0 {
		d.aliased++
	}
	if !d.rightTag(s, n, what) {
		return Value{}, false
	}
	switch s.Kind {
	case List:
		return d.list(s, n, what)
	case Record, Table:
		return d.mapping(s, n, what)
	}
	return d.scalar(s, n, what)
}

// alias reads what an alias stands for. Shapes have a fixed depth, so an
// anchor that contains itself ends by itself.
func (d *decoder) alias(s *Shape, n *yaml.Node, what string) (Value, bool) {
	if d.aliased > maxAliased {
		return Value{}, false // reported when the bound was met
	}
	d.inAlias++
	v, ok := d.value(s, n.Alias, what)
	d.inAlias--
	if d.inAlias == 0 && d.aliased > maxAliased {
		d.addf(n, "write the values out, or use extends", "aliases stand for more than %d values", maxAliased)
	}
	return v, ok
}

// replaceTag makes a list or mapping drop what earlier documents said.
const replaceTag = "!replace"

// plainTags say what a value is anyway, or that a scalar is text.
var plainTags = map[yaml.Kind]string{yaml.ScalarNode: "!!str", yaml.MappingNode: "!!map", yaml.SequenceNode: "!!seq"}

// rightTag refuses tags that we give no meaning to: !!null on a text would
// make it nothing.
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

// isTagged reports whether the document says the tag of a node.
func isTagged(n *yaml.Node) bool { return n.Style&yaml.TaggedStyle != 0 }

func (d *decoder) list(s *Shape, n *yaml.Node, what string) (Value, bool) {
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
		return v, false
	}
	return v, true
}

// add takes an item over, or marks the list when there is none to take.
func (v *Value) add(item Value, ok bool) {
	v.Broken = v.Broken || !ok || item.Broken
	if ok {
		v.Items = append(v.Items, item)
	}
}

func (d *decoder) mapping(s *Shape, n *yaml.Node, what string) (Value, bool) {
	v := Value{Place: d.place(n), Shape: s, Replace: n.ShortTag() == replaceTag}
	switch {
	case s.Short != "" && n.Kind == yaml.ScalarNode && !isNull(n):
		value, ok := d.value(s.Key(s.Short), n, what)
		v.put(Member{v.Place, s.Short, value}, ok)
		return v, ok
	case isNull(n) && s.Short == "" && len(s.required()) == 0:
		return v, true
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
		switch elem, first := s.element(key.Value), seen[key.Value]; {
		case elem == nil:
			d.unknownKey(s, key, what)
			v.Broken = true
		case first != nil:
			d.addf(key, "keep one of them", "duplicate key %s in %s, first said in line %d", Quote(key.Value), what,
				first.Line)
		default:
			seen[key.Value] = key
			fits := d.obeys(s.Rule, key, what)
			value, ok := d.value(elem, n.Content[i+1], key.Value)
			v.put(Member{d.place(key), key.Value, value}, fits && ok)
		}
	}
	for _, name := range s.required() {
		if seen[name] == nil {
			d.addf(n, "", "%s: key %q is missing", what, name)
			v.Broken = true
		}
	}
	return v, true
}

// put takes a member over, or marks the mapping when there is none to take.
func (v *Value) put(m Member, ok bool) {
	v.Broken = v.Broken || !ok || m.Value.Broken
	if ok {
		v.Members = append(v.Members, m)
	}
}

// required are the names of the keys that a record cannot do without.
func (s *Shape) required() []string {
	var names []string
	for _, key := range s.Keys {
		if key.Required {
			names = append(names, key.Name)
		}
	}
	return names
}

// key judges a mapping's key, following an alias.
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
	if remedy := s.Former[key.Value]; remedy != "" {
		d.addf(key, remedy, "%s has no key %s any more", what, Quote(key.Value))
		return
	}
	if near := Nearest(key.Value, s.names()); near != "" {
		d.addf(key, "", "unknown key %s in %s; did you mean %q?", Quote(key.Value), what, near)
		return
	}
	d.addf(key, "", "unknown key %s in %s; expected %s", Quote(key.Value), what, strings.Join(s.names(), ", "))
}
