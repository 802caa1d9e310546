package syntax

import (
	"bytes"
	"slices"

	"gopkg.in/yaml.v3"

	"claudebox/internal/profile/shape"
)

// kinds are the kinds of nodes as yaml.v3 has them. Below a document there are
// no others.
var kinds = [...]yaml.Kind{
	shape.ScalarNode: yaml.ScalarNode, shape.SequenceNode: yaml.SequenceNode,
	shape.MappingNode: yaml.MappingNode, shape.AliasNode: yaml.AliasNode,
}

// reading holds the nodes that aliases may stand for.
type reading map[*yaml.Node]*shape.Node

// node takes a node over with all below it.
func (r reading) node(from *yaml.Node) *shape.Node {
	if known := r[from]; known != nil {
		return known
	}
	n := &shape.Node{
		Kind: shape.NodeKind(slices.Index(kinds[:], from.Kind)), Tag: from.ShortTag(),
		Tagged: from.Style&yaml.TaggedStyle != 0,
		Value:  from.Value, Line: from.Line, Column: from.Column,
	}
	if from.Anchor != "" { // before what is in it, which may hold an alias of it
		r[from] = n
	}
	if from.Alias != nil {
		n.Alias = r.node(from.Alias)
	}
	for _, child := range from.Content {
		n.Content = append(n.Content, r.node(child))
	}
	return n
}

// Write is a document as text.
func Write(n *shape.Node) ([]byte, error) { return encode(written(n)) }

func written(n *shape.Node) *yaml.Node {
	to := &yaml.Node{Kind: kinds[n.Kind], Tag: n.Tag, Value: n.Value, LineComment: n.Comment}
	if n.Quoted {
		to.Style = yaml.DoubleQuotedStyle
	}
	for _, child := range n.Content {
		to.Content = append(to.Content, written(child))
	}
	return to
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
