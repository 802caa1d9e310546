package profile

import (
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/profile/shape"
)

// WithHosts is the text of a profile with more hosts at the head of its own list
// for tier allow; root is what src was read as. Nothing else is changed, comments
// included. It is false where there is no such list. Who calls it reads the
// result again, and sees whether it is what was meant: YAML can be written in
// more ways than this knows.
func WithHosts(root *shape.Node, src []byte, hosts []string) ([]byte, bool) {
	list := child(child(root, "network"), "allow")
	if list == nil || list.Kind != shape.SequenceNode || len(list.Content) == 0 {
		return nil, false
	}
	first := list.Content[0]
	lines := strings.SplitAfter(string(src), "\n")
	if first.Line < 1 || first.Line > len(lines) {
		return nil, false
	}
	line := []rune(lines[first.Line-1])
	if first.Column < 1 || first.Column > len(line) {
		return nil, false
	}
	before, rest := string(line[:first.Column-1]), string(line[first.Column-1:])
	var added strings.Builder
	if dash := strings.TrimRight(before, " "); strings.HasSuffix(dash, "-") { // an entry a line
		for _, host := range hosts {
			added.WriteString(before + quotedHost(host, rest) + "\n")
		}
		lines[first.Line-1] = added.String() + string(line)
	} else {
		for _, host := range hosts {
			added.WriteString(quotedHost(host, rest) + ", ")
		}
		lines[first.Line-1] = before + added.String() + rest
	}
	return []byte(strings.Join(lines, "")), true
}

// quotedHost writes a host as its neighbour is written; one with a wildcard
// would be taken for an alias without quotes.
func quotedHost(host, neighbour string) string {
	if strings.HasPrefix(neighbour, `"`) || strings.HasPrefix(host, "*") {
		return strconv.Quote(host)
	}
	return host
}

// child is the value of a mapping's key; nil: there is none.
func child(n *shape.Node, key string) *shape.Node {
	if n == nil || n.Kind != shape.MappingNode {
		return nil
	}
	for pair := range slices.Chunk(n.Content, 2) {
		if len(pair) == 2 && pair[0].Value == key {
			return pair[1]
		}
	}
	return nil
}
