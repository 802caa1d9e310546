package profile

import (
	"strconv"
	"strings"

	"claudebox/internal/profile/shape"
)

// WithHosts is the text of a profile with more hosts at the head of its own list
// for tier allow. Nothing else is changed, comments included. It is false where
// there is no such list. The caller reads the result again, to see whether it is
// what was meant: YAML can be written in more ways than this knows.
func WithHosts(src []byte, hosts []string) ([]byte, bool) {
	read, _ := shape.Decode(&shape.Document{}, src, schema, "profile")
	list := read.Get("network").Get("allow").Items
	if len(list) == 0 {
		return nil, false
	}
	first := list[0]
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
