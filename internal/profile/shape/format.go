package shape

import (
	"bytes"
	"strings"

	"gopkg.in/yaml.v3"
)

// Style is how [Style.Document] shows a value.
type Style struct {
	Origin func(Place) string          // where a value was said, as its comment
	Hide   func(key, text string) bool // members of tables of free text that are not shown; nil hides none
}

// unsaid is the comment of a value that no document said.
const unsaid = "by default"

// Hidden is what stands in the place of a value that is not shown.
const Hidden = "(not shown)"

// Document is v, a value of root, as a document in the order of the shape: what
// was said with its origin, and the defaults of what was not. With nothing
// hidden it says the same as v.
func (style Style) Document(root *Shape, v Value) ([]byte, error) { return encode(style.node(root, v)) }

// node is nil when there is nothing to say.
func (style Style) node(s *Shape, v Value) *yaml.Node {
	switch {
	case s.Kind == List:
		return style.list(s, v)
	case s.Kind == Record || s.Kind == Table:
		return style.mapping(s, v)
	case v.Said():
		return scalarNode(s, v.Text, style.Origin(v.Place))
	case s.Unsaid() != "":
		return scalarNode(s, s.Unsaid(), unsaid)
	}
	return nil
}

// Unsaid is what stands when a scalar is not said; "" when nothing does.
func (s *Shape) Unsaid() string {
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

func notInline(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa1 || r == 0x2028 || r == 0x2029 }

func (style Style) list(s *Shape, v Value) *yaml.Node {
	if len(v.Items) == 0 {
		return nil
	}
	node := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, item := range v.Items {
		if short := item.Get(s.Elem.Short); len(item.Members) == 1 && short.Said() {
			item = short // as most people write it
		}
		if child := style.node(item.Shape, item); child != nil {
			node.Content = append(node.Content, child)
		}
	}
	return node
}

// mapping writes the keys that were said, and the defaults of the others. A
// record that is replaced as a whole has no defaults of its own once a part
// of it was said.
func (style Style) mapping(s *Shape, v Value) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	add := func(key string, value *yaml.Node) {
		if value != nil {
			node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
		}
	}
	for _, key := range s.Keys {
		if value := v.Get(key.Name); value.Said() || !s.Whole || !v.Said() {
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

// OfJSON is a JSON text as YAML: the same keys in the same order.
func OfJSON(text []byte) ([]byte, error) {
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, err
	}
	blockStyle(&node)
	return encode(&node)
}

// blockStyle drops the braces and quotes that the nodes remember from JSON.
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
