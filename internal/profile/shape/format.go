package shape

import (
	"bytes"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Style says how [Style.Document] writes a value.
type Style struct {
	Origin func(Place) string          // returns the comment for a value from that place
	Hide   func(key, text string) bool // reports whether to hide a Scalar in a Table; nil hides none
}

// unsaid is the comment of a value that no document sets.
const unsaid = "by default"

// Hidden replaces a value that is not shown.
const Hidden = "(not shown)"

// Document returns v, a value of the shape root, as a YAML document with the keys in
// the order of the shape. Each value has its origin as a comment; absent ones are
// written with their defaults. Unless something is hidden, decoding it gives a value
// that is equal to v but for places and defaults.
func (style Style) Document(root *Shape, v Value) ([]byte, error) { return encode(style.node(root, v)) }

// node returns nil if v is absent and has no default.
func (style Style) node(s *Shape, v Value) *yaml.Node {
	switch {
	case s.Kind == List:
		return style.list(s, v)
	case s.Kind == Record || s.Kind == Table:
		return style.mapping(s, v)
	case v.IsSet():
		return scalarNode(s, v.Text, style.Origin(v.Place))
	case s.DefaultText() != "":
		return scalarNode(s, s.DefaultText(), unsaid)
	}
	return nil
}

// DefaultText returns the default of a scalar, or "" if it has none.
func (s *Shape) DefaultText() string {
	if s.Kind == Word {
		return s.Words[0]
	}
	return s.Default
}

func scalarNode(s *Shape, text, comment string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, LineComment: comment}
	switch {
	case s.Kind == Flag:
		node.Tag = "!!bool"
	case s.Kind == Number:
		node.Tag = "!!int"
	case strings.ContainsFunc(text, notInline):
		node.Style = yaml.DoubleQuotedStyle // a block scalar cannot carry the comment
	}
	return node
}

func notInline(r rune) bool { return unicode.IsControl(r) || r == 0xa0 || r == 0x2028 || r == 0x2029 }

func (style Style) list(s *Shape, v Value) *yaml.Node {
	if len(v.Items) == 0 {
		return nil
	}
	node := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, item := range v.Items {
		if short := item.Get(s.Elem.ScalarKey); len(item.Members) == 1 && short.IsSet() {
			item = short // as most people write it
		}
		if child := style.node(item.Shape, item); child != nil {
			node.Content = append(node.Content, child)
		}
	}
	return node
}

// mapping returns a node with the keys of v and the defaults of absent ones. For a
// record that merges as a whole (Whole), absent keys get their defaults only if the
// entire record is absent. It returns nil if there are no keys.
func (style Style) mapping(s *Shape, v Value) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	add := func(key string, value *yaml.Node) {
		if value != nil {
			node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
		}
	}
	for _, key := range s.Keys {
		if value := v.Get(key.Name); value.IsSet() || !s.Whole || !v.IsSet() {
			add(key.Name, style.node(key.Shape, value))
		}
	}
	if s.Kind == Table {
		for _, m := range v.Members {
			value := m.Value
			if style.Hide != nil && value.Shape.Kind == Scalar && style.Hide(m.Key, value.Text) {
				value.Text = Hidden
			}
			add(m.Key, style.node(value.Shape, value))
		}
	}
	if len(node.Content) == 0 {
		return nil
	}
	return node
}

// OfJSON converts JSON to YAML with the same keys in the same order.
func OfJSON(text []byte) ([]byte, error) {
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, err
	}
	blockStyle(&node)
	return encode(&node)
}

// blockStyle makes nodes be written without the braces and quotes of JSON.
func blockStyle(n *yaml.Node) {
	n.Style = 0
	for _, child := range n.Content {
		blockStyle(child)
	}
}

func encode(n *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	writer := yaml.NewEncoder(&out)
	writer.SetIndent(2)
	if err := writer.Encode(n); err != nil {
		return nil, err
	}
	return out.Bytes(), writer.Close()
}
