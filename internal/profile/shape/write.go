package shape

import (
	"bytes"

	"gopkg.in/yaml.v3"
)

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
